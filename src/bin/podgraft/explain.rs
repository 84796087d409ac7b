//! `podgraft explain CODE`: prints the page of a diagnostic code.

use podgraft::diagnostic::{Code, Diagnostic};
use podgraft::policy::schema::meant_code;

use crate::pages::print_page;
use crate::run::Exit;

/// `podgraft explain CODE`.
pub fn code(name: &str) -> Exit {
    print_page(
        Code::find(name)
            .map(|code| code.page().as_bytes().to_vec())
            .ok_or_else(|| unknown(name)),
    )
}

fn unknown(name: &str) -> Diagnostic {
    Diagnostic::error(
        Code::UnknownCode,
        format!("there is no diagnostic code `{name}`"),
    )
    .help(meant_code(name))
}
