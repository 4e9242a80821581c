package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/bench/stranger"
	"lieudit/cmd/terminal"
)

// strangerCommand measures what a hostile stranger with a valid key costs the other customers.
func (p program) strangerCommand() *cli.Command {
	return &cli.Command{
		Name:  "stranger",
		Usage: "Prove that a stranger with a cheap key kills nothing and delays nobody",
		Description: `A service of its own is attacked by a stranger with a key of each plan, who tries one thing after the other and then
everything at once: files of very many columns, texts that are slow to look for, answers that are not read, slow and half
requests, as many connections as there are, the dearest routes and searches, large bodies, floods of keys. Honest customers
send small requests at a fixed rate meanwhile. None of these may be refused; their p99 is at most three times what it is
along with as many honest connections as the attack works with; the process lives, and has less than 1 GiB of anonymous
memory, which is read every 100 ms. Exit 1 when any of that does not hold.

At 6 GiB the run kills the process. One that has ended, or has kept 1 GiB, is started again for the next attack. With
--before the same stranger attacks the program of another commit. It needs Linux.

Attacks: ` + strings.Join(stranger.Names(), "; ") + `.

  go run ./cmd/bench stranger
  go run ./cmd/bench stranger --for 1m --only 'matrix of 625'
  go run ./cmd/bench stranger --before HEAD~1 --json`,
		Flags: []cli.Flag{
			&cli.DurationFlag{Name: "for", Value: 10 * time.Minute, Usage: "`TIME` of the stranger", Validator: atLeast(time.Second)},
			&cli.StringSliceFlag{Name: "only", Usage: "`NAME` of an attack, as often as there are; all of them when left out", Validator: terminal.Each(terminal.OneOf(stranger.Names()...))},
			&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "`SEED` of the order of the attacks and of what they draw"},
			&cli.IntFlag{Name: "customers", Value: 6, Usage: "`HOW MANY` customers are measured", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "rate", Value: 20, Usage: "`REQUESTS` a second of each", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "sites", Value: 4000, Usage: "`HOW MANY` sites of 16 KiB the stranger's accounts have, as far as their plans allow", Validator: terminal.AtLeastOne},
			&cli.StringFlag{Name: "before", Usage: "attack the program of `COMMIT`"},
			&cli.StringFlag{Name: "program", Usage: "attack the service of another build of this program, `FILE`", TakesFile: true},
			&cli.StringFlag{Name: "dir", Value: ".", Usage: "`FOLDER` on the disk to use", TakesFile: true},
			&cli.BoolFlag{Name: "json", Usage: "print the report as one line of JSON"},
		},
		Action: p.attackAsStranger,
	}
}

// atLeast returns a validator that refuses a shorter time.
func atLeast(shortest time.Duration) func(time.Duration) error {
	return func(d time.Duration) error {
		if d < shortest {
			return fmt.Errorf("it is at least %v", shortest)
		}
		return nil
	}
}

// attackAsStranger runs the test. The report is printed after an error too, because the violations until then are true.
func (p program) attackAsStranger(ctx context.Context, c *cli.Command) (err error) {
	if c.IsSet("before") && c.IsSet("program") {
		return terminal.NewUsageError(c, "--before and --program exclude each other")
	}
	o := stranger.Options{
		Dir: c.String("dir"), Program: c.String("program"), For: c.Duration("for"), Only: c.StringSlice("only"), Seed: c.Uint64("seed"),
		Customers: c.Int("customers"), Rate: c.Int("rate"), Sites: c.Int("sites"), Log: func(what string) { fmt.Fprintln(p.Err, what) },
	}
	if c.IsSet("before") {
		dir, err := os.MkdirTemp(o.Dir, "lieudit-bench-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		if o.Program, err = buildProgramOf(ctx, c.String("before"), dir); err != nil {
			return err
		}
	}
	rep, err := stranger.Run(ctx, o)
	if len(rep.Violations) > 0 {
		err = errors.Join(err, errPromiseBroken)
	}
	if c.Bool("json") {
		return errors.Join(p.PrintJSON(rep), err)
	}
	return errors.Join(p.printStrangerReport(rep), err)
}

// buildProgramOf builds the program of a commit. The path is absolute, as the processes of a harness need it.
func buildProgramOf(ctx context.Context, commit, dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return harness.BuildProgram(ctx, commit, dir)
}

// printStrangerReport prints tables of the customers' times and of the attacks, what the stranger was answered, and the violations.
func (p program) printStrangerReport(rep stranger.Report) error {
	err := errors.Join(p.PrintTable(newCustomerTable(rep)), p.PrintLine(""), p.PrintTable(newAttackTable(rep)), p.PrintLine(""), p.PrintTable(newOutcomeTable(rep)), p.PrintLine(""),
		p.PrintFields(
			"seed", strconv.FormatUint(rep.Seed, 10),
			"anonymous memory", fmt.Sprintf("%.0f MiB at most, %.0f in the end", rep.PeakMiB, rep.FinalMiB),
		))
	return errors.Join(err, p.printViolations(rep.Violations))
}

// newCustomerTable has the customers' times in each phase: of each kind alone, along with the most honest connections and along with all
// attacks, of all kinds together otherwise.
func newCustomerTable(rep stranger.Report) terminal.Table {
	t := terminal.Table{{"CUSTOMERS", "KIND", "REQUESTS", "P50 ms", "P99 ms", "MAX ms"}}
	add := func(phase string, figures ...stranger.Latency) {
		for _, f := range figures {
			t = append(t, []string{phase, f.Kind, terminal.GroupThousands(f.Requests), formatMilliseconds(f.P50), formatMilliseconds(f.P99), formatMilliseconds(f.Max)})
		}
	}
	add("alone", rep.Alone...)
	for i, c := range rep.Crowds {
		phase := fmt.Sprintf("and %d honest connections", c.Connections)
		if i == len(rep.Crowds)-1 {
			add(phase, c.Figures...)
		} else {
			add(phase, stranger.FindLatency(c.Figures, stranger.AllKinds))
		}
	}
	for _, turn := range rep.Turns {
		if turn.Attack == stranger.Together {
			add("and the stranger", turn.Figures...)
		}
	}
	return t
}

// newAttackTable has a row a turn.
func newAttackTable(rep stranger.Report) terminal.Table {
	t := terminal.Table{{"ATTACK", "CONNECTIONS", "SECONDS", "BEFORE MiB", "PEAK MiB", "BUSY AFTER s", "REQUESTS", "REFUSED", "P50 ms", "P99 ms", "HONEST P99 ms", "RATIO", "PROCESS"}}
	for _, turn := range rep.Turns {
		all := stranger.FindLatency(turn.Figures, stranger.AllKinds)
		refused := 0
		for _, n := range turn.Refused {
			refused += n
		}
		process := "lives"
		switch {
		case turn.Guarded:
			process = "killed at 6 GiB"
		case turn.Died:
			process = "ended"
		}
		t = append(t, []string{
			turn.Attack, terminal.GroupThousands(turn.Connections), fmt.Sprintf("%.0f", turn.Seconds), fmt.Sprintf("%.0f", turn.BaseMiB), fmt.Sprintf("%.0f", turn.PeakMiB),
			fmt.Sprintf("%.1f", turn.BusySeconds), terminal.GroupThousands(turn.Requests), terminal.GroupThousands(refused),
			formatMilliseconds(all.P50), formatMilliseconds(all.P99), formatMilliseconds(turn.HonestP99), fmt.Sprintf("%.1f", turn.Ratio), process,
		})
	}
	return t
}

// newOutcomeTable has a row for each attack of each turn.
func newOutcomeTable(rep stranger.Report) terminal.Table {
	t := terminal.Table{{"TURN", "ATTACK", "WHAT THE STRANGER GOT"}}
	for _, turn := range rep.Turns {
		for _, name := range slices.Sorted(maps.Keys(turn.Outcomes)) {
			which := turn.Attack
			if turn.Attack != stranger.Together {
				which = "alone"
			}
			t = append(t, []string{which, name, stranger.FormatCounts(turn.Outcomes[name])})
		}
	}
	return t
}

func formatMilliseconds(ms float64) string { return fmt.Sprintf("%.1f", ms) }
