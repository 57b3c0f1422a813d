package main

import (
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"One of ${enum}."`
}

// shells have the words of a command line completed by what the command itself prints.
var shells = map[string]string{
	"bash": `_neap() {
	local IFS=$'\n'
	COMPREPLY=($(compgen -W "$(neap __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}")" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _neap neap
`,
	"zsh": `#compdef neap
_neap() {
	local -a found
	found=("${(@f)$(neap __complete -- "${(@)words[2,CURRENT]}")}")
	compadd -a found
}
compdef _neap neap
`,
	"fish": `complete -c neap -f -a '(neap __complete -- (commandline -opc)[2..-1] (commandline -ct))'
`,
}

func (c *completion) Run(a *app) error {
	_, err := io.WriteString(a.out, shells[c.Shell])
	return err
}

type complete struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run prints the commands, or for a word with a dash the flags, that may stand where the last word does.
func (c *complete) Run(a *app) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	last := ""
	if len(words) > 0 {
		last, words = words[len(words)-1], words[:len(words)-1]
	}
	if slices.Contains(words, "--") { // of another command
		return nil
	}
	at := a.model.Node
	for _, word := range words {
		for _, child := range at.Children {
			if child.Type == kong.CommandNode && child.Name == word {
				at = child
				break
			}
		}
	}
	var found strings.Builder
	add := func(word string) {
		if word != "" && strings.HasPrefix(word, last) {
			found.WriteString(word + "\n")
		}
	}
	for _, child := range at.Children {
		if child.Type == kong.CommandNode && !child.Hidden {
			add(child.Name)
		}
	}
	for _, group := range at.AllFlags(true) {
		for _, flag := range group {
			if strings.HasPrefix(last, "-") {
				add("--" + flag.Name)
			}
		}
	}
	for _, argument := range at.Positional {
		for _, word := range argument.EnumSlice() {
			add(word)
		}
	}
	_, err := io.WriteString(a.out, found.String())
	return err
}
