package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/bench/metering"
	"lieudit/cmd/terminal"
)

const meterHelp = `Real processes of this program share one node and one account with a small quota. Clients at every instance ask
until so many requests are answered; a 503 or a broken connection is tried again. Then the log is folded again:
never more than the cap, every 200 on the log, nothing counted twice; billed without an answer at most what was on
its way when a process was killed. Exit 1 when any of that does not hold.

With --chaos every instance and the node are killed (kill -9) and started again at random moments, and 5 % of
the appends lose their connection, half before the node has them, half with the answer on its way.

  go run ./cmd/bench usage
  go run ./cmd/bench usage --chaos --runs 20
  go run ./cmd/bench usage --chaos --seed 7 --json`

func (p program) benchMeteringCommand() *cli.Command {
	return &cli.Command{
		Name:        "usage",
		Usage:       "Prove that requests are admitted once, billed once and capped exactly",
		Description: meterHelp,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "chaos", Usage: "kill processes and cut connections in the middle of it"},
			&cli.IntFlag{Name: "instances", Value: 3, Usage: "`HOW MANY` instances share the node", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "connections", Value: 64, Usage: "`HOW MANY` clients ask each instance", Validator: terminal.AtLeastOne},
			&cli.Int64Flag{Name: "cap", Value: 20_000, Usage: "`REQUESTS` the account has; above what DISCOVERY may have the plan is BUSINESS"},
			&cli.Int64Flag{Name: "requests", Value: 60_000, Usage: "`REQUESTS` to be answered, of all clients together"},
			&cli.IntFlag{Name: "runs", Value: 1, Usage: "`HOW MANY` times, each on a log of its own", Validator: terminal.AtLeastOne},
			&cli.Uint64Flag{Name: "seed", Usage: "`SEED` of the first run's chaos, one more for each run after it; chosen when left out", HideDefault: true},
			&cli.StringFlag{Name: "path", Value: "/me", Usage: "`PATH` that is asked for"},
			&cli.StringFlag{Name: "postgres", Usage: "Postgres for the read models, as `postgres://…`, empty; SQLite when left out"},
			&cli.StringFlag{Name: "dir", Value: ".", Usage: "`FOLDER` on the disk to use", TakesFile: true},
			&cli.BoolFlag{Name: "json", Usage: "print one line of JSON a run"},
		},
		Action: p.benchMetering,
	}
}

var errViolated = errors.New("metering was not exact")

func (p program) benchMetering(ctx context.Context, c *cli.Command) error {
	o := metering.Options{
		Dir: c.String("dir"), Postgres: c.String("postgres"), Path: c.String("path"), Chaos: c.Bool("chaos"), Seed: c.Uint64("seed"),
		Instances: c.Int("instances"), Connections: c.Int("connections"), Cap: c.Int64("cap"), Requests: c.Int64("requests"),
	}
	switch {
	case o.Cap < 1 || o.Requests < 1:
		return terminal.NewUsageError(c, "--cap and --requests are at least 1")
	case o.Postgres != "" && c.Int("runs") > 1:
		return terminal.NewUsageError(c, "--postgres is of one run: every run has a log of its own, and a database is of one log")
	}
	if !c.IsSet("seed") {
		o.Seed = rand.Uint64() >> 12 // every JSON reader's numbers hold it
	}
	var violated error
	for range c.Int("runs") {
		rep, err := metering.Run(ctx, o)
		if err != nil {
			return err
		}
		if len(rep.Violations) > 0 {
			violated = errViolated
		}
		if err := p.printMeteringReport(c, rep); err != nil {
			return err
		}
		o.Seed++
	}
	return violated
}

func (p program) printMeteringReport(c *cli.Command, rep metering.Report) error {
	if c.Bool("json") {
		return json.NewEncoder(p.Out).Encode(rep)
	}
	for _, i := range rep.Incidents {
		if err := p.PrintLine("%8.3f s  %s", i.At.Seconds(), i.What); err != nil {
			return err
		}
	}
	if err := errors.Join(p.PrintTable(instanceTable(rep)), p.PrintLine(""), p.PrintTable(instanceRunTable(rep)), p.PrintLine(""), p.printMeteringSummary(rep)); err != nil {
		return err
	}
	for _, v := range rep.Violations {
		if err := p.PrintLine("VIOLATED: %s", v); err != nil {
			return err
		}
	}
	return p.PrintLine("")
}

func instanceTable(rep metering.Report) terminal.Table {
	t := terminal.Table{{"INSTANCE", "SERVED", "P50 ms", "P99 ms"}}
	for _, i := range rep.Instances {
		t = append(t, []string{i.Name, formatCount(i.Served), fmt.Sprintf("%.1f", i.P50), fmt.Sprintf("%.1f", i.P99)})
	}
	return t
}

func instanceRunTable(rep metering.Report) terminal.Table {
	t := terminal.Table{{"LIFE", "INCARNATION", "KILLED", "SERVED", "COUNTED", "BILLED UNANSWERED", "AT MOST"}}
	for _, l := range rep.Processes {
		killed := ""
		if l.Killed {
			killed = "yes"
		}
		t = append(t, []string{l.Name, l.InstanceID, killed, formatCount(l.Served), formatCount(l.Counted), formatCount(l.BilledUnanswered), formatCount(l.InFlight + l.OpenRefunds)})
	}
	return t
}

func (p program) printMeteringSummary(rep metering.Report) error {
	return p.PrintFields(
		"seed", strconv.FormatUint(rep.Seed, 10),
		"cap", formatCount(rep.Cap),
		"answered", fmt.Sprintf("%s in %.1f s: %s with 200, %s with 429", formatCount(rep.Answered), rep.Seconds, formatCount(rep.Served), formatCount(rep.Refused)),
		"tried again", formatCount(rep.Retried),
		"counted", fmt.Sprintf("%s by the log, in %s ticks of which %s void; %s refunded", formatCount(rep.Counted), formatCount(rep.Ticks), formatCount(rep.VoidTicks), formatCount(rep.Refunded)),
		"served a second", formatCount(int64(rep.PerSecond)),
	)
}

func formatCount(n int64) string { return terminal.GroupThousands(int(n)) }
