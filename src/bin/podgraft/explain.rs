//! `podgraft explain CODE`: prints the page of a diagnostic code.

use podgraft::diagnostic::{Code, Diagnostic};
use podgraft::policy::schema::meant_code;

use crate::args::ExplainArgs;
use crate::pages::print_page;
use crate::run::Exit;

/// `podgraft explain CODE`.
pub fn code(args: &ExplainArgs, name: &str) -> Exit {
    print_page(
        Code::find(name)
            .map(|code| code.page().as_bytes().to_vec())
            .ok_or_else(|| unknown(args, name)),
    )
}

fn unknown(args: &ExplainArgs, name: &str) -> Diagnostic {
    let message = match args.code {
        Some(_) => format!("there is no diagnostic code `{name}`"),
        None => format!("`{name}` is neither a diagnostic code nor a file"),
    };
    Diagnostic::error(Code::UnknownCode, message).help(meant_code(name))
}
