//! How often a few bytes stand in what agents write: texts, code and what tools print.

/// What bytes are told apart: letters, `_`, blanks, digits and the rest.
const KINDS: usize = 30;

/// How seldom each kind is, as a power of two in hex: `4` is one of sixteen. Of digits and of the rest, one of them.
const FIRST: &[u8; KINDS] = b"465546665875544585445777686378";

/// The same of each kind behind another, a line for that one. Counted in logs of many agents.
const BEHIND: [&[u8; KINDS]; KINDS] = [
    b"75447749597343959443678869968b", // a
    b"455635675574774774574777577769", // b
    b"47674793695468289473696879877a", // c
    b"466626784886784886676888785378", // d
    b"475466797a955386733586748a6489", // e
    b"466644772775773685764888689469", // f
    b"677727654776755575566777674388", // g
    b"377728884777773776655888785489", // h
    b"6753566999844236954386969797aa", // i
    b"55653666656665565636566666897a", // j
    b"577626673777767577456777775489", // k
    b"487538883884884787545788584499", // l
    b"35752888488748438847688868559a", // m
    b"495446494967875598326799895399", // n
    b"6664876867444255936546589995aa", // o
    b"38862885688477458354388778569a", // p
    b"56666556666656656565264656597a", // q
    b"4856277949576537954456895984a9", // r
    b"5958386549678745964359877973a8", // s
    b"4878389439988935955658884a4499", // t
    b"65654868488453858432588888779d", // u
    b"366626673777675777666767778679", // v
    b"466446743776653674467666766479", // w
    b"566656664676666476626666666478", // x
    b"676767776774665277467777765388", // y
    b"55554555555555555555555555786a", // z
    b"664565783786465594525769996a7d", // _
    b"5656657759976766a654786c9bb188", // blank
    b"555555778778788788867787769548", // digit
    b"6756667778976576965578799ab267", // other
];

/// The four bytes in a row that are seen most, one behind the other, in the order of the alphabet.
const COMMON: &[u8] = b"\
    \x20\x20co\x20\x20if\x20\x20re\x20act\x20age\x20all\x20and\x20app\x20are\x20ass\x20cha\x20che\x20cla\x20cod\x20com\x20con\x20cre\x20dat\x20ent\x20err\x20exi\x20exp\x20fil\x20for\
    \x20fro\x20fun\x20git\x20if\x20\x20imp\x20in\x20\x20ins\x20int\x20is\x20\x20it\x20\x20lin\x20mod\x20nam\x20new\x20not\x20of\x20\x20on\x20\x20or\x20\x20out\x20par\x20pat\x20pro\x20rea\x20rep\
    \x20res\x20ret\x20run\x20sec\x20ses\x20set\x20sho\x20src\x20sta\x20str\x20tes\x20tha\x20the\x20thi\x20tim\x20to\x20\x20tod\x20too\x20tra\x20typ\x20upd\x20use\x20whe\x20wit\
    \x20wor\x20you.com.ts\x20.ts:/cli/com/ent:\x20stabasableackaactiagenall\x20all_ame\x20anchand\x20angearchare\x20ase\x20asse\
    atchate\x20atedatesatioatusaudebasebashble\x20branbuilcallcesschanchecckagckpoclasclaucodecommcompcond\
    confconscontcouncreacripctedctioctivctorcurrd\x20thdatadateder\x20detadinge\x20coe\x20fie\x20ine\x20ree\x20the\x20toeate\
    eckpeconecteectoed\x20tembeemenendeent\x20entientserr\x20erroerviescress\x20essiest\x20est.estiesuletaietureval\
    evieexitexpeexpofilefiltfor\x20formfromfuncgentgit\x20githhanghat\x20he\x20che\x20sheckhellhen\x20his\x20hookhub.id:\x20\
    ientile\x20ilesilteimpoinaling\x20ingsinitinpuinstint\x20inteintsion\x20ion.ionsitemith\x20ithuive\x20jectjsonkage\
    kingkpoilasslatelaudles\x20letelinelistll\x20tlocaltermainmandmberme:\x20mentmmanmmitmodemplemponmpormsg_\
    n\x20thnal\x20namenctindernds\x20nentnfigng\x20tningnot\x20nputnst\x20ntennterntexntirnts/ode\x20ointokenolu_ommaommi\
    omplompoomptonenonfionlyons\x20onstonteooluopenoptiorksort\x20ouldoundountout\x20outpoverpacepackparapath\
    pdatpectpoinponeportpromprovptior\x20thrancransrateratireadreatrectrentreporeseresuretureviringript\
    riterom\x20romprovirrenrrorrun\x20rvics\x20ans\x20ins\x20thsagescrisecosed\x20ser\x20servsesssidesingsionspacspecsrc/\
    ssiostarstatstinstrastrisultt\x20cot\x20ret\x20thtailtarttasktatetatuteamted\x20temptentter\x20testtextthatthe\x20\
    therthisthubtimetingtiontiretivetodotoketooltorytputtrantrattreetrintureturntypeuld\x20unctupdaurn\x20\
    urreuse\x20userutpuvaluvicevideviewwhenwithworkwritxporyou\x20ype\x20ypes\
";

/// Whether four bytes are among those that are seen most.
fn is_common(four: [u8; 4]) -> bool {
    is_in(&COMMON_BITS, COMMON, four)
}

fn is_often(four: [u8; 4]) -> bool {
    is_in(&OFTEN_BITS, OFTEN, four)
}

/// A bit for each of some, by a hash: most bytes are known by it not to be among them.
type Bits = [u64; 256];
static COMMON_BITS: Bits = bits(COMMON);
static OFTEN_BITS: Bits = bits(OFTEN);

const fn bits(list: &[u8]) -> Bits {
    let (fours, _) = list.as_chunks::<4>();
    let mut bits = [0; 256];
    let mut at = 0;
    while at < fours.len() {
        let (word, bit) = slot(fours[at]);
        bits[word] |= 1 << bit;
        at += 1;
    }
    bits
}

const fn slot(four: [u8; 4]) -> (usize, u32) {
    let mixed = u32::from_le_bytes(four).wrapping_mul(0x9E37_79B1);
    ((mixed >> 24) as usize, mixed >> 18 & 63)
}

fn is_in(bits: &Bits, list: &[u8], four: [u8; 4]) -> bool {
    let four = four.map(|byte| byte.to_ascii_lowercase());
    let (word, bit) = slot(four);
    bits[word] >> bit & 1 == 1 && list.as_chunks::<4>().0.binary_search(&four).is_ok()
}

/// Whether a word is nothing but what is seen all the time.
pub(super) fn is_everyday(word: &str) -> bool {
    let mut fours = (0..word.len()).filter_map(|at| word.as_bytes()[at..].first_chunk().copied());
    word.len() >= 4 && fours.all(is_common)
}

/// More of them, from words of rules. Another part of the word is taken where it has one.
const OFTEN: &[u8] = b"\
    \x20add\x20api\x20aut\x20cod\x20com\x20dat\x20fil\x20ins\x20is\x20\x20key\x20log\x20nam\x20now\x20num\x20of\x20\
    \x20pas\x20req\x20ses\x20set\x20str\x20to\x20\x20tok\x20was\x20wor-----des-r---ses.clo.com.org.str/api/hom/hoo\
    /ser/use/wor_blo_pro_str_tes_useaaaaableacceackaackeactiafteagenaileainsallealsealueame=amplanceandaandlangeansi\
    api/applappsarcharedargeariaartiase\x20ash\x20ass\x20asseassiata\x20atchate\x20atesatioatoratteaturatusaultauth\
    backbasebilible\x20blocbuilbytecal\x20catecaticcescenscentces/cesschancharchecchemchinckagckedcleacliecloscode\
    codicom/commcompcondconfconscontconvcopecorecouncratcretcripctioctivctorcturd\x20cod\x20todatadatedecodentderi\
    dersdescdeskdevedingdiredocudropdulee\x20ise\x20ofe\x20pae\x20ree\x20toe.coeam.earcecateckeecksecomeconecreecto\
    ed\x20wedacedrieed\x20egisegraelopemaiembeeminemovemplen\x20tenceendeenseent-ent_enteentientrenumeporequier\x20c\
    er\x20ier\x20ter:\x20eraleratere\x20erifernaers/ert_erveerviery\x20escoesenespoess\x20essaessiest\x20est.est_\
    estaestiestrestset\x20tetheetteeveleveneverevieexpoext-ey:\x20facefactficafiedfilefinefirsflagflowfsetfterfull\
    funcgemigentggergistgithgnedgrapgrathandhangharehashhavehe\x20theckhellhelpherehighhis\x20homehookhosthttphub.\
    iablibleicalicaticenicesiconidenidthientificifieightigneilesilitimagimpoinatindeine\x20inesinfoing\x20ing_inge\
    inneinstinteion\x20ion.ion_ionaioniionsiptiireciredirstis\x20tiscoistriterithuitoritteity\x20iverizatk_deken\x20\
    ken_key\x20key:kflokindlabslasslatelderlearleaslevelicalicelienlikelinelinglityllbaloadlocalocklogglooklooplose\
    lowsmagemainmandmarkmarymbermembmentmessminimmitmodemodimodumovemporn\x20isn\x20tonal\x20namenctindarndexnent\
    new\x20nextnfigngerngesningnitinkinnnetnodenonenotinow\x20nse\x20nstansurntegntennterntitntrinumbnvero-apocal\
    ocatode\x20odelodifodulokenoldeome/ommeommion\x20tonalonenonfionidonneons\x20ons.onsconseonstontaonteontronve\
    ooksool_oolsopenoptior:\x20oreporg/orkforksort\x20orteountourcout\x20overpacepackpagepasspdatperspikepingplic\
    poneponsportpostppinpplepplipresprevprojpropps:/ptiopushquesquirr\x20cor\x20tor.apraceragerancransrantraphrate\
    ratiratore\x20areamrecarecorectredaregiremoreplreporeprrequreserespressrestret\x20reviriesrighringriptriterity\
    rivariverkflrnalroperoutrowsrst\x20rt\x20crtedructrustrvics\x20cos\x20iss\x20nos\x20tos://sagescopscorscri\
    se\x20ase\x20ise\x20tsearsecosecrsentser\x20sersservsessset\x20sharsidesignsionsonnsourspacsponssagssinssio\
    st\x20tstanstatstedstemstepstorstrastrestristrustrysts\x20syncsystt\x20cot\x20det\x20ist\x20pat\x20tot.gotabl\
    tailtanttatitatutch\x20te\x20atemptentter\x20teratermternterstesttextth\x20tthe\x20therthisthorthrothubtialtifi\
    timetingtiontitytiveto\x20stodotoketooltoratoretorytps:tractraitrantreatreetrintructs\x20ttterttpstureturntype\
    uestuffeuilduireull\x20ult\x20umbeuncturceuresurnsuseruthovaluvarivelover\x20veriviceviewwas\x20whatwidtwindword\
    workwritxpory\x20=\x20y\x20coync\x20youtypesystezatizero\
";

fn kind(byte: u8) -> usize {
    match byte.to_ascii_lowercase() {
        letter @ b'a'..=b'z' => usize::from(letter - b'a'),
        b'_' => 26,
        b' ' | b'\n' | b'\r' | b'\t' => 27,
        b'0'..=b'9' => 28,
        _ => 29,
    }
}

fn power(digit: u8) -> u32 {
    char::from(digit).to_digit(16).unwrap_or(0)
}

/// How seldom some bytes are, as a power of two: the higher the more seldom.
pub(super) fn seldom(bytes: &[u8]) -> u32 {
    let first = bytes.first().map_or(0, |byte| power(FIRST[kind(*byte)]));
    let behind = bytes
        .windows(2)
        .map(|pair| power(BEHIND[kind(pair[0])][kind(pair[1])]));
    let sum = first + behind.sum::<u32>();
    match bytes.first_chunk() {
        Some(four) if is_common(*four) || is_often(*four) => sum / 2,
        _ => sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_common_is_known() {
        for list in [COMMON, OFTEN] {
            assert!(list.as_chunks::<4>().0.is_sorted() && list.len().is_multiple_of(4));
        }
        assert!(is_everyday("string") && is_everyday("session") && !is_everyday("secret"));
        for (common, rare) in [
            (" to ", "wd t"),
            ("tion", "xoxb"),
            ("ing ", "pwd:"),
            ("e", "q"),
        ] {
            assert!(
                seldom(common.as_bytes()) < seldom(rare.as_bytes()),
                "{common} {rare}"
            );
        }
    }
}
