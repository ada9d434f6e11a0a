"""`dmkc completion`: scripts for shells, generated from the parser."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dmkc.cli.common import add_command

SHELLS = ("bash", "zsh", "fish")
EXAMPLE = "dmkc completion bash > ~/.local/share/bash-completion/completions/dmkc"


@dataclass(frozen=True)
class Node:
    """A command: the words that choose it, what may follow, and its options."""

    path: tuple[str, ...]
    children: tuple[tuple[str, str], ...]
    options: tuple[tuple[str, str, tuple[str, ...]], ...]
    """Flag, help, and the words it takes where they are known."""


def add(commands: Any) -> None:
    parser = add_command(commands, "completion", "print a shell's completion", EXAMPLE, run)
    shell = parser.add_argument("shell", choices=SHELLS)
    shell.metavar = "|".join(SHELLS)


def run(args: argparse.Namespace) -> None:
    from dmkc.cli.app import build_parser

    nodes = list(_nodes(build_parser(), ()))
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell](nodes), end="")


def _nodes(parser: argparse.ArgumentParser, path: tuple[str, ...]) -> Iterator[Node]:
    children: list[tuple[str, str]] = []
    options: list[tuple[str, str, tuple[str, ...]]] = []
    inner: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            inner = dict(action.choices)
            children = [(a.dest, str(a.help or "")) for a in action._choices_actions]
        elif not action.option_strings and action.choices:
            children = [(str(word), "") for word in action.choices]
        words = tuple(getattr(action, "words", ()))
        for flag in action.option_strings:
            if flag.startswith("--"):
                options.append((flag, _short(str(action.help or "")), words))
    yield Node(path, tuple(children), tuple(options))
    for name, child in inner.items():
        yield from _nodes(child, (*path, name))


def _short(text: str) -> str:
    """The first clause of a help text, without what a shell would interpret."""
    plain = "".join(c for c in text if c.isalnum() or c in " .,-/()")
    return plain.split(". ")[0].split("  ")[0][:60].strip()


def _words(node: Node) -> str:
    return " ".join([*(name for name, _ in node.children), *(flag for flag, _, _ in node.options)])


def _values(nodes: list[Node]) -> dict[str, str]:
    return {flag: " ".join(words) for n in nodes for flag, _, words in n.options if words}


def _cases(nodes: list[Node], line: str) -> str:
    """One case of a shell's `case` for every command."""
    return "\n".join(
        f'        "{" ".join(node.path)}") {line.format(words=_words(node))} ;;' for node in nodes
    )


def _bash(nodes: list[Node]) -> str:
    known = "|".join(f'"{" ".join(node.path)}"' for node in nodes if node.path)
    values = "\n".join(
        f'        {flag}) COMPREPLY=($(compgen -W "{words}" -- "$current")); return ;;'
        for flag, words in _values(nodes).items()
    )
    return f"""\
# Completion of dmkc for bash.
_dmkc() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
    local command="" longer word words=""
    COMPREPLY=()
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        longer="${{command:+$command }}$word"
        case "$longer" in {known}) command="$longer" ;; esac
    done
    case "$previous" in
{values}
    esac
    case "$command" in
{_cases(nodes, 'words="{words}"')}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    [[ "$current" == -* ]] || COMPREPLY+=($(compgen -f -- "$current"))
}}
complete -o filenames -F _dmkc dmkc
"""


def _zsh(nodes: list[Node]) -> str:
    known = "|".join(f'"{" ".join(node.path)}"' for node in nodes if node.path)
    values = "\n".join(
        f"        {flag}) compadd -- {words}; return ;;" for flag, words in _values(nodes).items()
    )
    return f"""\
#compdef dmkc
# Completion of dmkc for zsh.
_dmkc() {{
    local command="" longer word
    for word in "${{(@)words[2,CURRENT-1]}}"; do
        longer="${{command:+$command }}$word"
        case "$longer" in {known}) command="$longer" ;; esac
    done
    case "${{words[CURRENT-1]}}" in
{values}
    esac
    case "$command" in
{_cases(nodes, "compadd -- {words}")}
    esac
    [[ "${{words[CURRENT]}}" == -* ]] || _files
}}
if [ "$funcstack[1]" = "_dmkc" ]; then _dmkc "$@"; else compdef _dmkc dmkc; fi
"""


def _fish(nodes: list[Node]) -> str:
    lines = ["# Completion of dmkc for fish."]
    for node in nodes:
        seen = [f"__fish_seen_subcommand_from {word}" for word in node.path]
        later = " ".join(name for name, _ in node.children)
        if later:
            seen.append(f"not __fish_seen_subcommand_from {later}")
        when = f" -n '{'; and '.join(seen)}'" if seen else ""
        for name, text in node.children:
            lines.append(f"complete -c dmkc{when} -a {name} -d '{_short(text)}'")
        for flag, text, words in node.options:
            takes = f" -x -a '{' '.join(words)}'" if words else ""
            lines.append(f"complete -c dmkc{when} -l {flag[2:]}{takes} -d '{text}'")
    return "\n".join(lines) + "\n"
