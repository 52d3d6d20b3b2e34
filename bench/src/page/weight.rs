//! What a browser that was never here fetches before any data: the shell, its styles and all modules, packed.

use anyhow::{Result, ensure};

use super::Bench;
use crate::serve::{get, once};
use crate::table::{Goal, Table};

/// An address of the page. All have the same shell.
const SHELL: &str = "/sessions";

/// The goal, in KB.
const LIMIT: f64 = 200.0;

pub(super) fn measure(table: &mut Table, bench: &Bench<'_>) -> Result<()> {
    let (_, shell, _) = once(bench.address, &get(bench.address, SHELL, ""), "")?;
    let shell = String::from_utf8(shell)?;
    let mut files = vec![SHELL.to_owned()];
    for name in shell
        .split(['"', ' '])
        .filter(|it| it.starts_with("/page/"))
    {
        if !files.iter().any(|known| known == name) {
            files.push(name.to_owned());
        }
    }
    ensure!(files.len() > 10, "the shell names {} files", files.len());
    let (mut packed, mut whole) = (0, 0);
    for file in &files {
        let ask = |more: &str| {
            once(
                bench.address,
                &get(bench.address, file, more),
                "content-encoding",
            )
        };
        let (status, body, encoding) = ask("Accept-Encoding: gzip\r\n")?;
        ensure!(
            status == 200 && encoding.as_deref() == Some("gzip"),
            "{file} is not packed: {status}, {encoding:?}"
        );
        packed += body.len();
        whole += ask("")?.1.len();
    }
    let (packed, whole) = (packed as f64 / 1e3, whole as f64 / 1e3);
    table.row(
        &format!("weight of the page, {} files, gzip", files.len()),
        &format!("{packed:.0} KB"),
        &format!("{LIMIT:.0} KB"),
        packed / LIMIT,
        Goal::AtMost(1.0),
    );
    table.note(format!(
        "The page is {whole:.0} KB unpacked; a browser keeps the files until they change."
    ));
    Ok(())
}
