package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/bench/simulate"
	"lieudit/cmd/terminal"
)

// simulateCommand plays simulated histories.
func (p program) simulateCommand() *cli.Command {
	return &cli.Command{
		Name:  "simulate",
		Usage: "Play simulated days of three instances in which everything fails, and check what everybody is told",
		Description: `Each history runs in one process, on a clock that does not wait: three instances on shared logs, databases and a vault,
twenty accounts with a hundred acts a day, five faults a day. What strikes is the table of package
cmd/bench/simulation/faults, what is checked the list of package cmd/bench/simulation/customers. A history that breaks a
rule is played again and cut to the shortest script that still breaks it, which is kept in a file, and so is what it printed.
Exit 1 when there is one.

  go run ./cmd/bench simulate --days 5000
  go run ./cmd/bench simulate --days 100 --seed 1 --race
  go run ./cmd/bench simulate --planted --days 500`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "days", Value: 200, Usage: "`HOW MANY` days in all histories", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "history", Value: 20, Usage: "`DAYS` of one history", Validator: terminal.AtLeastOne},
			&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "`SEED` of the first history"},
			&cli.IntFlag{Name: "parallel", Value: runtime.GOMAXPROCS(0), Usage: "histories at a time", Validator: terminal.AtLeastOne},
			&cli.BoolFlag{Name: "race", Usage: "with the race detector"},
			&cli.BoolFlag{Name: "planted", Usage: "in copies of the tree with a planted fault each: after how many days is it found"},
			&cli.StringFlag{Name: "only", Usage: "`NAME` of the one planted fault"},
			&cli.IntFlag{Name: "mutations", Usage: "in copies of the tree with a mutation each, drawn from lines that tests cover: `HOW MANY`"},
			&cli.Uint64Flag{Name: "mutation-seed", Value: 1, Usage: "`SEED` of the draw"},
			&cli.StringFlag{Name: "keep", Value: ".", Usage: "`FOLDER` for the scripts and the output of failed histories", TakesFile: true},
			&cli.BoolFlag{Name: "json", Usage: "print the report as one line of JSON"},
		},
		Action: p.simulate,
	}
}

// simulate plays histories of this tree, or of copies with planted faults.
func (p program) simulate(ctx context.Context, c *cli.Command) error {
	o := simulate.Options{
		Days: c.Int("days"), HistoryDays: min(c.Int("history"), c.Int("days")), Seed: c.Uint64("seed"), Parallel: c.Int("parallel"),
		Race: c.Bool("race"), Tree: ".", Keep: c.String("keep"), Log: func(what string) { fmt.Fprintln(p.Err, what) },
	}
	if c.Bool("planted") || c.Int("mutations") > 0 {
		return p.simulatePlanted(ctx, c, o)
	}
	rep, err := simulate.Run(ctx, o)
	if len(rep.Failures) > 0 {
		err = errors.Join(err, errPromiseBroken)
	}
	if c.Bool("json") {
		return errors.Join(p.PrintJSON(rep), err)
	}
	return errors.Join(p.printSimulation(rep), err)
}

// printSimulation prints how many days were played, and each history that broke a rule.
func (p program) printSimulation(rep simulate.Report) error {
	seconds := rep.Took.Seconds()
	_, err := fmt.Fprintf(p.Out, "%d days in %.1f s, %.0f a minute; %d histories broke a rule\n", rep.Days, seconds, float64(rep.Days)/seconds*60, len(rep.Failures))
	for _, f := range rep.Failures {
		_, printErr := fmt.Fprintf(p.Out, "\nseed %d, %d of %d times again: %s\n", f.Seed, f.Failed, f.Played, f.Text)
		if f.Race != "" {
			fmt.Fprintln(p.Out, f.Race)
		}
		if f.Output != "" {
			fmt.Fprintln(p.Out, "  what it printed:", f.Output)
		}
		if f.Script != "" {
			fmt.Fprintf(p.Out, "  go test ./cmd/bench/simulation -run TestHistory -v -args -log -seed %d -script %s\n", f.Seed, f.Script)
		}
		err = errors.Join(err, printErr)
	}
	return err
}

// simulatePlanted finds planted faults, and prints after how many days each was found.
func (p program) simulatePlanted(ctx context.Context, c *cli.Command, o simulate.Options) error {
	var found []simulate.Found
	var err error
	if n := c.Int("mutations"); n > 0 {
		found, err = simulate.RunMutations(ctx, o, n, c.Uint64("mutation-seed"))
	} else {
		found, err = simulate.RunPlanted(ctx, o, c.String("only"))
	}
	if c.Bool("json") {
		return errors.Join(p.PrintJSON(found), err)
	}
	rows := terminal.Table{{"PLANTED", "FOUND AFTER", "BY"}}
	for _, f := range found {
		after := "not found"
		if f.Days > 0 {
			after = fmt.Sprintf("%d days", f.Days)
		}
		rows = append(rows, []string{f.Name, after, f.Text})
	}
	return errors.Join(p.PrintTable(rows), err)
}
