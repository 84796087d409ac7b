//! `podgraft explain`: a diagnostic code to its page.

use podgraft::diagnostic::{Code, Diagnostic};
use podgraft::policy::schema::{did_you_mean, nearest};

use crate::pages::give;
use crate::run::Exit;

/// `podgraft explain CODE`.
pub fn code(name: &str) -> Exit {
    give(
        Code::find(name)
            .map(|code| code.page().as_bytes().to_vec())
            .ok_or_else(|| unknown(name)),
    )
}

fn unknown(name: &str) -> Diagnostic {
    let names = || Code::ALL.iter().map(|code| code.name());
    let help = match nearest(name, names()) {
        Some(near) => did_you_mean(near),
        None => format!("the codes are {}", names().collect::<Vec<_>>().join(", ")),
    };
    Diagnostic::error(
        Code::UnknownCode,
        format!("there is no diagnostic code `{name}`"),
    )
    .help(help)
}
