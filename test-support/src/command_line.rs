//! Command lines: each number has its bounds.

use std::any::TypeId;
use std::time::Duration;

use clap::builder::ValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command};

/// The options of a command and its subcommands that take the greatest number of their type, as
/// `command --option`. Hidden ones are among them.
#[must_use]
pub fn unbounded_numbers(command: &Command) -> Vec<String> {
    let own = command.get_arguments().filter_map(|argument| {
        let parser = argument.get_value_parser();
        let takes_it = takes(parser, greatest(parser)?);
        takes_it.then(|| format!("{} --{}", command.get_name(), argument.get_id()))
    });
    own.chain(command.get_subcommands().flat_map(unbounded_numbers)).collect()
}

/// The greatest number of the type that is parsed; `None` if that is no type of numbers.
fn greatest(parser: &ValueParser) -> Option<String> {
    let is = |id| parser.type_id() == id;
    Some(if is(TypeId::of::<u8>()) {
        u8::MAX.to_string()
    } else if is(TypeId::of::<u16>()) {
        u16::MAX.to_string()
    } else if is(TypeId::of::<u32>()) {
        u32::MAX.to_string()
    } else if is(TypeId::of::<u64>()) {
        u64::MAX.to_string()
    } else if is(TypeId::of::<usize>()) {
        usize::MAX.to_string()
    } else if is(TypeId::of::<i32>()) {
        i32::MAX.to_string()
    } else if is(TypeId::of::<i64>()) {
        i64::MAX.to_string()
    } else if is(TypeId::of::<f64>()) {
        f64::MAX.to_string()
    } else if is(TypeId::of::<Duration>()) {
        format!("{}s", u64::MAX)
    } else {
        return None;
    })
}

/// Whether a value is taken by an option that has nothing but this parser.
fn takes(parser: &ValueParser, value: String) -> bool {
    let option = Arg::new("number").long("number").value_parser(parser.clone());
    let arguments = ["alone".to_owned(), format!("--number={value}")];
    match Command::new("alone").arg(option).try_get_matches_from(arguments) {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::ValueValidation => false,
        Err(error) => panic!("{value}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_without_bounds_are_found() {
        let option = |name: &'static str, parser: ValueParser| {
            Arg::new(name).long(name).value_parser(parser).hide(true)
        };
        let inner = Command::new("inner")
            .arg(option("float", clap::value_parser!(f64).into()))
            .arg(option("ratio", (|_: &str| Err::<f64, _>("never")).into()));
        let command = Command::new("outer")
            .arg(option("free", clap::value_parser!(u32).into()))
            .arg(option("open", clap::value_parser!(u64).range(1..).into()))
            .arg(option("bounded", clap::value_parser!(u16).range(..=9).into()))
            .arg(option("text", clap::value_parser!(String)))
            .subcommand(inner);
        assert_eq!(unbounded_numbers(&command), ["outer --free", "outer --open", "inner --float"]);
    }
}
