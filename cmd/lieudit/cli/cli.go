// Package cli is the command line of lieudit: its commands, their flags, what they print and their exit codes. It uses the
// streams, the environment and the time zone of its process only through a Program, so that a test runs every command as a
// shell does.
//
// Program.Run builds the tree of commands and passes it to terminal.RunCommand. A method named xCommand declares one
// command: its help, its flags and its action. The action reads the flags, does one piece of work in another package and
// prints the result; it decides nothing about requests or events. Commands are of three kinds:
//
//	serve, node ─────────────────────────────────> service.Run, node.Serve   until the context ends
//	ban, roads, geocode,
//	backup, restore, log, vault ─────────────────> packages on the data folder
//	account, key, token, login, invite, usage, audit,
//	projections, upgrade ──> session ──> adminclient.Client ──> customer area of a running service
//	sites, route ─> session ──> adminclient.Client ──> API of a running service
//	health ──────────────────────────────────────> /readyz of a running service
//	guide ───────────────────────────────────────> texts in the program
//
// terminal.RunCommand checks the arguments against a command's ArgsUsage before the action runs, so actions use required
// arguments without a check. A result for people is a table or a list of fields; for programs it is JSON (--json), or the
// one value that a script needs if standard output is not a terminal.
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
// LowerPriority are required. A Program may run several command lines.
type Program struct {
	terminal.Terminal
	Version       string
	Serve         func(context.Context, service.Config) error // runs an instance until the context ends: service.Run
	LowerPriority func()                                      // gives every other process precedence; nil: not possible here
}

// Run runs one command line, the program's name first, and returns the exit code: 0 done, 1 failed, 2 wrong usage. It
// returns soon after ctx ends.
func (p Program) Run(ctx context.Context, args []string) int {
	if len(args) == 2 && (args[1] == "--version" || args[1] == "-v") { // as other programs have it
		args = []string{args[0], "version"}
	}
	return p.RunCommand(ctx, p.rootCommand(), args, error.Error)
}

// rootCommand is the tree of all commands. It is built for each run, because terminal.RunCommand changes it.
func (p Program) rootCommand() *cli.Command {
	return &cli.Command{
		Name:        "lieudit",
		Usage:       "French postal addresses and each customer's own places, as a service",
		Description: rootHelp,
		Commands: []*cli.Command{
			p.serveCommand(), p.nodeCommand(),
			p.banCommand(), p.geocodeCommand(), p.roadsCommand(), p.routeCommand(), p.sitesCommand(),
			p.accountCommand(), p.keyCommand(), p.usageCommand(), p.tokenCommand(), p.loginCommand(), p.inviteCommand(), p.sessionCommand(), p.auditCommand(), p.projectionsCommand(),
			p.upgradeCommand(), p.backupCommand(), p.restoreCommand(), p.logCommand(), p.vaultCommand(),
			p.healthCommand(), p.guideCommand(), p.versionCommand(),
		},
		EnableShellCompletion:           true,
		ConfigureShellCompletionCommand: func(c *cli.Command) { c.Hidden = false }, // the library hides it from the help
	}
}

// rootHelp is the help of lieudit itself: the shortest way to a service that answers.
const rootHelp = `Start a service with all it needs in ./lieudit-data, and work with it from a second terminal:

  lieudit serve
  lieudit ban import adresses-48.csv.gz
  lieudit roads import languedoc-roussillon-latest.osm.pbf
  lieudit account open "Mairie de Mende" --plan STARTER --id mende
  lieudit key issue mende --label "shop backend"
  lieudit audit log mende

Every command has --help. Exit codes: 0 done, 1 failed, 2 wrong usage.`

// versionCommand is lieudit version. It sends no request: the version is that of this program.
func (p Program) versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "Print the version of the program",
		Action: func(context.Context, *cli.Command) error {
			return p.PrintLine("lieudit %s", p.Version)
		},
	}
}

// instantHelp explains the times that parseInstant reads, for the help of commands with such flags.
const instantHelp = `Times are RFC 3339 (2026-11-21T12:25:03+01:00), or French time: 2026-11-21 12:25:03,
2026-11-21 12:25, or 2026-11-21 for the first instant of the day.`

// parseInstant reads a time in one of the forms of instantHelp. The empty text is the zero time, which stands for "not
// given"; a text that means the zero time is refused.
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

// formatExactTime formats a time to the microsecond, so that --as-of, --from and --to accept it and find the same event.
// The zero time is "".
func (p Program) formatExactTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(p.TimeZone).Format("2006-01-02T15:04:05.000000Z07:00")
}
