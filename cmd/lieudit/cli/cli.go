// Package cli is the command line of lieudit: its commands, their flags, what they print and how they end. Its constraint:
// it reaches the process only through a Program, so that every command runs in a test as it runs in a shell.
//
// Program.Run builds the tree of commands and hands it to terminal.RunCommand. Commands are of three kinds:
//
//	serve, node ─────────────────────────────────> service.Run, node.Serve   until the context ends
//	ban, geocode, vault ─────────────────────────> packages on the data folder
//	account, key, token, usage, audit,
//	projections ──> session ──> adminclient.Client ──> customer area of a running service
//	sites ────────> session ──> adminclient.Client ──> API of a running service
package cli

import (
	"context"
	"fmt"
	"time"

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
	return p.RunCommand(ctx, p.rootCommand(), args, error.Error)
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

const instantHelp = `Times are RFC 3339 (2026-11-21T12:25:03+01:00), or in this machine's time zone: 2026-11-21 12:25:03,
2026-11-21 12:25, or 2026-11-21 for the first instant of the day.`

// parseInstant reads a time in one of the forms of instantHelp. The empty text is the zero time.
func (p Program) parseInstant(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil && !t.IsZero() {
		return t, nil
	}
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, p.TimeZone); err == nil && !t.IsZero() {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time: write 2026-11-21T12:25:03+01:00, 2026-11-21 12:25:03 or 2026-11-21", text)
}

// formatTime formats a time to the minute, in the program's time zone; the zero time is "".
func (p Program) formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(p.TimeZone).Format("2006-01-02 15:04")
}

// formatExactTime formats a time so that --as-of, --from and --to read it back without loss.
func (p Program) formatExactTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(p.TimeZone).Format("2006-01-02T15:04:05.000000Z07:00")
}
