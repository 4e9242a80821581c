// Package cli is the command line of lieudit: the commands, their flags, what they print and how they end.
// It reaches the process only through a Program, so that every command runs in a test as it runs in a shell.
// Exit codes: 0 done, 1 failed, 2 wrong usage.
package cli

import (
	"context"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/service"
	"lieudit/cmd/terminal"
)

// Program is lieudit's command line in the surroundings that the embedded Terminal describes. All fields but
// LowerPriority are required.
type Program struct {
	terminal.Terminal
	Version       string
	Serve         func(context.Context, service.Config) error
	LowerPriority func() // lets every other process go first, for work that nobody waits for; nil: nothing
}

// Run runs one command line, the program's name first, and returns the exit code. It returns soon after ctx ends.
func (p Program) Run(ctx context.Context, args []string) int {
	return p.RunCommand(ctx, p.rootCommand(), args, explainError)
}

func (p Program) rootCommand() *cli.Command {
	return &cli.Command{
		Name:        "lieudit",
		Usage:       "French postal addresses and each customer's own places, as a service",
		Description: rootHelp,
		Commands: []*cli.Command{
			p.serveCommand(), p.nodeCommand(),
			p.banCommand(), p.geocodeCommand(), p.sitesCommand(),
			p.accountCommand(), p.keyCommand(), p.usageCommand(), p.tokenCommand(), p.auditCommand(), p.projectionsCommand(), p.vaultCommand(),
			p.versionCommand(),
		},
		EnableShellCompletion:           true,
		ConfigureShellCompletionCommand: func(c *cli.Command) { c.Hidden = false },
	}
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
			return p.PrintLine("lieudit %s", p.Version)
		},
	}
}
