// Package console is the command line of lieudit: the commands, their flags, what they print and how they end.
// It reaches the world through a Program alone, so that every command runs in a test as it runs in a shell.
// Exit codes: 0 done, 1 failed, 2 wrong usage.
package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/service"
	"lieudit/schemas/token"
)

const (
	done   = 0
	failed = 1
	misuse = 2
)

// Program is what a run of the program has around it. All fields are required.
type Program struct {
	Version  string
	In       io.Reader
	Out, Err io.Writer
	Terminal bool // whether people read Out
	Env      func(string) (string, bool)
	Zone     *time.Location // in which times are read and shown
	Serve    func(context.Context, service.Config) error
	Meek     func() // lets every other process go first, for work that nobody waits for; nil: nothing
}

// Run runs one command line, the program's name first, and returns the exit code. It returns soon after ctx ends.
func (p Program) Run(ctx context.Context, args []string) int {
	err := p.root().Run(ctx, args)
	var f *failure
	switch {
	case err == nil:
		return done
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		p.complain("interrupted")
		return failed
	case errors.As(err, &f):
		p.complain(explain(f.err))
		return failed
	default: // all that did not come out of a command's work
		p.complain(err.Error())
		return misuse
	}
}

// complain prints an error. Should a token have come into it, only its hint is seen.
func (p Program) complain(text string) {
	text = strings.ReplaceAll(token.Default.Redact(text), "\n", "\n         ")
	fmt.Fprintln(p.Err, "lieudit: "+text)
}

func (p Program) root() *cli.Command {
	root := &cli.Command{
		Name:        "lieudit",
		Usage:       "French postal addresses and each customer's own places, as a service",
		Description: rootHelp,
		Commands: []*cli.Command{
			p.serve(), p.node(),
			p.ban(), p.geocode(), p.sites(),
			p.accounts(), p.keys(), p.usage(), p.tokens(), p.audit(), p.projections(), p.vault(),
			p.bench(), p.version(),
		},
		Reader: p.In, Writer: p.Out, ErrWriter: p.Err,
		Action:                          groupAction,
		ExitErrHandler:                  func(context.Context, *cli.Command, error) {}, // Run decides
		EnableShellCompletion:           true,
		ConfigureShellCompletionCommand: func(c *cli.Command) { c.Hidden = false },
	}
	p.finish(root)
	return root
}

const rootHelp = `Start a service with all it needs in ./lieudit-data, and work with it from a second terminal:

  lieudit serve
  lieudit ban import adresses-48.csv.gz
  lieudit account open "Mairie de Mende" --plan STARTER --id mende
  lieudit key issue mende --label "shop backend"
  lieudit audit log mende

Every command has --help. Exit codes: 0 done, 1 failed, 2 wrong usage.`

func (p Program) version() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "Print the version of the program",
		Action: func(context.Context, *cli.Command) error {
			return p.say("lieudit %s", p.Version)
		},
	}
}
