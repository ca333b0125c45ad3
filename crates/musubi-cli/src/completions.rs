//! `musubi completions`: scripts that complete the command in a shell.

use clap_complete::Shell;

use crate::output;

/// For which shell.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The shell
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  bash:  musubi completions bash > ~/.local/share/bash-completion/completions/musubi
  zsh:   musubi completions zsh > ~/.zfunc/_musubi        (a directory of your $fpath)
  fish:  musubi completions fish > ~/.config/fish/completions/musubi.fish";

/// Prints the script.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(arguments: &Arguments, command: &mut clap::Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, command, "musubi", &mut script);
    output::print(&String::from_utf8(script)?)
}
