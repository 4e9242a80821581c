// Package cli is the command line of lieudit: the commands, their flags, what they print and how they end.
// It reaches the world through a Program alone, so that every command runs in a test as it runs in a shell.
// Exit codes: 0 done, 1 failed, 2 wrong usage.
package cli

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
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// Program is what a run of the program has around it. All fields are required.
type Program struct {
	Version       string
	In            io.Reader
	Out, Err      io.Writer
	IsTerminal    bool // whether people read Out
	LookupEnv     func(string) (string, bool)
	TimeZone      *time.Location // in which times are read and shown
	Serve         func(context.Context, service.Config) error
	LowerPriority func() // lets every other process go first, for work that nobody waits for; nil: nothing
}

// Run runs one command line, the program's name first, and returns the exit code. It returns soon after ctx ends.
func (p Program) Run(ctx context.Context, args []string) int {
	err := p.rootCommand().Run(ctx, args)
	var f *commandError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		p.printError("interrupted")
		return exitFailed
	case errors.As(err, &f):
		p.printError(explainError(f.err))
		return exitFailed
	default: // all that did not come out of a command's work
		p.printError(err.Error())
		return exitUsage
	}
}

// printError prints an error. Should a token have come into it, only its hint is seen.
func (p Program) printError(text string) {
	text = strings.ReplaceAll(token.DefaultPrefixes.Redact(text), "\n", "\n         ")
	fmt.Fprintln(p.Err, "lieudit: "+text)
}

func (p Program) rootCommand() *cli.Command {
	root := &cli.Command{
		Name:        "lieudit",
		Usage:       "French postal addresses and each customer's own places, as a service",
		Description: rootHelp,
		Commands: []*cli.Command{
			p.serveCommand(), p.nodeCommand(),
			p.banCommand(), p.geocodeCommand(), p.sitesCommand(),
			p.accountCommand(), p.keyCommand(), p.usageCommand(), p.tokenCommand(), p.auditCommand(), p.projectionsCommand(), p.vaultCommand(),
			p.benchCommand(), p.versionCommand(),
		},
		Reader: p.In, Writer: p.Out, ErrWriter: p.Err,
		Action:                          runGroup,
		ExitErrHandler:                  func(context.Context, *cli.Command, error) {}, // Run decides
		EnableShellCompletion:           true,
		ConfigureShellCompletionCommand: func(c *cli.Command) { c.Hidden = false },
	}
	p.prepareCommands(root)
	return root
}

const rootHelp = `Start a service with all it needs in ./lieudit-data, and work with it from a second terminal:

  lieudit serve
  lieudit ban import adresses-48.csv.gz
  lieudit account open "Mairie de Mende" --plan STARTER --id mende
  lieudit key issue mende --label "shop backend"
  lieudit audit log mende

Every command has --help. Exit codes: 0 done, 1 failed, 2 wrong usage.`

func (p Program) versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "Print the version of the program",
		Action: func(context.Context, *cli.Command) error {
			return p.printLine("lieudit %s", p.Version)
		},
	}
}
