//! Whole numbers with `+ - * / %` and parentheses.

const MOST_DEPTH: usize = 64;

pub(super) fn work_out(text: &str) -> Result<i64, String> {
    let mut reader = Reader {
        bytes: text.as_bytes(),
        at: 0,
        depth: 0,
    };
    let number = reader.sum()?;
    match reader.peek() {
        None => Ok(number),
        Some(_) => Err(format!("{:?} does not belong there", reader.shown())),
    }
}

struct Reader<'t> {
    bytes: &'t [u8],
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn peek(&mut self) -> Option<u8> {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn shown(&self) -> String {
        let rest = String::from_utf8_lossy(&self.bytes[self.at..]);
        rest.chars().take(12).collect()
    }

    fn sum(&mut self) -> Result<i64, String> {
        let mut number = self.product()?;
        while let Some(operator @ (b'+' | b'-')) = self.peek() {
            self.at += 1;
            let other = self.product()?;
            number = if operator == b'+' {
                number.checked_add(other)
            } else {
                number.checked_sub(other)
            }
            .ok_or("the number is too large")?;
        }
        Ok(number)
    }

    fn product(&mut self) -> Result<i64, String> {
        let mut number = self.one()?;
        while let Some(operator @ (b'*' | b'/' | b'%')) = self.peek() {
            self.at += 1;
            let other = self.one()?;
            if other == 0 && operator != b'*' {
                return Err("it is divided by zero".to_owned());
            }
            number = match operator {
                b'*' => number.checked_mul(other),
                b'/' => number.checked_div(other),
                _ => number.checked_rem(other),
            }
            .ok_or("the number is too large")?;
        }
        Ok(number)
    }

    fn one(&mut self) -> Result<i64, String> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(format!("nested deeper than {MOST_DEPTH}"));
        }
        let number = match self.peek() {
            Some(b'-') => {
                self.at += 1;
                self.one()?.checked_neg().ok_or("the number is too large")?
            }
            Some(b'+') => {
                self.at += 1;
                self.one()?
            }
            Some(b'(') => {
                self.at += 1;
                let number = self.sum()?;
                if self.peek() != Some(b')') {
                    return Err("a ) is missing".to_owned());
                }
                self.at += 1;
                number
            }
            Some(b'0'..=b'9') => {
                let from = self.at;
                while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
                    self.at += 1;
                }
                let digits = String::from_utf8_lossy(&self.bytes[from..self.at]);
                digits
                    .parse()
                    .map_err(|_| "the number is too large".to_owned())?
            }
            Some(_) => return Err(format!("{:?} does not belong there", self.shown())),
            None => return Err("a number is missing".to_owned()),
        };
        self.depth -= 1;
        Ok(number)
    }
}
