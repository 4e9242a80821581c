package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/bench/upgrade"
	"lieudit/cmd/terminal"
)

// upgradeCommand tests that the program of an earlier commit and this one serve side by side.
func (p program) upgradeCommand() *cli.Command {
	return &cli.Command{
		Name:  "upgrade",
		Usage: "Prove that instances are exchanged for a new program, and back, without anybody noticing",
		Description: `Three instances of the program of a commit share one node and one Postgres. One at a time they are exchanged for this
program, back, and forth again, and the upgrade is finished, while clients write sites and use up quotas; they go
round the instances and try the next one where a connection is refused. No answer is a 5xx, no acknowledged write
is lost, no cap is passed, all instances answer the same from their read models at every step, and read models that
are made again answer it too. Two more instances of the old program run on when the upgrade is finished: one is cut off
from Postgres, one is frozen (not on Windows) and wakes up later. They end by themselves, and answer 503 rather than 200
where the new program counts requests in streams that they do not know. Exit 1 when any of that does not hold. It builds
the commit with git and Go.

  go run ./cmd/bench upgrade --before HEAD~1
  go run ./cmd/bench upgrade --before 64cca9e --json`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "before", Usage: "`COMMIT` of the old program", Required: true},
			&cli.IntFlag{Name: "clients", Value: 4, Usage: "`HOW MANY` clients use up quotas, and as many write", Validator: terminal.AtLeastOne},
			&cli.Int64Flag{Name: "cap", Value: 2000, Usage: "`REQUESTS` of the account of each phase"},
			&cli.StringFlag{Name: "postgres", Usage: "Postgres, as `postgres://…`, empty; a server of the run's own when left out"},
			&cli.StringFlag{Name: "dir", Value: ".", Usage: "`FOLDER` on the disk to use", TakesFile: true},
			&cli.BoolFlag{Name: "json", Usage: "print the report as one line of JSON"},
		},
		Action: p.proveUpgrade,
	}
}

// proveUpgrade runs the test. The report is printed after an error too.
func (p program) proveUpgrade(ctx context.Context, c *cli.Command) error {
	rep, err := upgrade.Run(ctx, upgrade.Options{
		Dir: c.String("dir"), Before: c.String("before"), Postgres: c.String("postgres"), Clients: c.Int("clients"), Cap: c.Int64("cap"),
		Log: func(what string) { fmt.Fprintln(p.Err, what) },
	})
	if len(rep.Violations) > 0 {
		err = errors.Join(err, errPromiseBroken)
	}
	if c.Bool("json") {
		return errors.Join(p.PrintJSON(rep), err)
	}
	return errors.Join(p.printUpgradeReport(rep), err)
}

// printUpgradeReport prints a table of the phases, the totals and the violations.
func (p program) printUpgradeReport(rep upgrade.Report) error {
	count := func(n int64) string { return terminal.GroupThousands(int(n)) }
	phases := terminal.Table{{"PHASE", "CAP", "SERVED", "SPENT", "COUNTED", "WITHOUT ANSWER", "OUTDATED 200", "OUTDATED 503", "SECONDS"}}
	for _, ph := range rep.Phases {
		phases = append(phases, []string{ph.Name, count(ph.Cap), count(ph.Served), count(ph.Spent), count(ph.Counted), count(ph.Cut),
			count(ph.OutdatedServed), count(ph.OutdatedRefused), fmt.Sprintf("%.1f", ph.Seconds)})
	}
	err := errors.Join(p.PrintTable(phases), p.PrintLine(""), p.PrintFields(
		"before", rep.Before,
		"requests", fmt.Sprintf("%s answered in %.1f s, %s of them writes; the longest took %d ms", count(rep.Requests), rep.Seconds, count(rep.Writes), rep.LongestMs),
		"tried again", fmt.Sprintf("%s after a refused connection, %s after one that was cut (%s by this program), %s after a 5xx", count(rep.Refused), count(rep.Cut), count(rep.CutByNew), count(rep.Failed)),
		"compared", fmt.Sprintf("%s lists were the same", count(int64(rep.Compared))),
		"format", fmt.Sprintf("%d in the end", rep.Format),
	))
	return errors.Join(err, p.printViolations(rep.Violations))
}
