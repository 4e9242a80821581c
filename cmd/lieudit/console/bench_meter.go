package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/trial"
)

const meterHelp = `Real processes of this program share one node and one account with a small quota. Clients at every instance ask
until so many requests are answered; a 503 or a broken connection is tried again. Then the log is folded again:
never more than the cap, every 200 on the log, nothing counted twice; billed without an answer at most what was on
its way when a process was killed. Exit 1 when any of that does not hold.

With --chaos every instance and the node are killed (kill -9) and started again at random moments, and 5 % of
the appends lose their connection, half before the node has them, half with the answer on its way.

  lieudit bench meter
  lieudit bench meter --chaos --runs 20
  lieudit bench meter --chaos --seed 7 --json`

func (p Program) benchMeter() *cli.Command {
	return &cli.Command{
		Name:        "meter",
		Usage:       "Prove that requests are admitted once, billed once and capped exactly",
		Description: meterHelp,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "chaos", Usage: "kill processes and cut connections in the middle of it"},
			&cli.IntFlag{Name: "instances", Value: 3, Usage: "`HOW MANY` instances share the node", Validator: atLeastOne},
			&cli.IntFlag{Name: "connections", Value: 64, Usage: "`HOW MANY` clients ask each instance", Validator: atLeastOne},
			&cli.Int64Flag{Name: "cap", Value: 20_000, Usage: "`REQUESTS` the account has; above what DISCOVERY may have the plan is BUSINESS"},
			&cli.Int64Flag{Name: "requests", Value: 60_000, Usage: "`REQUESTS` to be answered, of all clients together"},
			&cli.IntFlag{Name: "runs", Value: 1, Usage: "`HOW MANY` times, each on a log of its own", Validator: atLeastOne},
			&cli.Uint64Flag{Name: "seed", Usage: "`SEED` of the first run's chaos, one more for each run after it; chosen when left out", HideDefault: true},
			&cli.StringFlag{Name: "path", Value: "/me", Usage: "`PATH` that is asked for"},
			&cli.StringFlag{Name: "postgres", Usage: "Postgres for the read models, as `postgres://…`, empty; SQLite when left out"},
			&cli.StringFlag{Name: "dir", Value: ".", Usage: "`FOLDER` on the disk to use", TakesFile: true},
			&cli.BoolFlag{Name: "json", Usage: "print one line of JSON a run"},
		},
		Action: p.proveMeter,
	}
}

var errViolated = errors.New("metering was not exact")

func (p Program) proveMeter(ctx context.Context, c *cli.Command) error {
	o := trial.Options{
		Dir: c.String("dir"), Postgres: c.String("postgres"), Path: c.String("path"), Chaos: c.Bool("chaos"), Seed: c.Uint64("seed"),
		Instances: c.Int("instances"), Connections: c.Int("connections"), Cap: c.Int64("cap"), Requests: c.Int64("requests"),
	}
	switch {
	case o.Cap < 1 || o.Requests < 1:
		return wrong(c, "--cap and --requests are at least 1")
	case o.Postgres != "" && c.Int("runs") > 1:
		return wrong(c, "--postgres is of one run: every run has a log of its own, and a database is of one log")
	}
	if !c.IsSet("seed") {
		o.Seed = rand.Uint64() >> 12 // every JSON reader's numbers hold it
	}
	var violated error
	for range c.Int("runs") {
		rep, err := trial.Run(ctx, o)
		if err != nil {
			return err
		}
		if len(rep.Violations) > 0 {
			violated = errViolated
		}
		if err := p.tellTrial(c, rep); err != nil {
			return err
		}
		o.Seed++
	}
	return violated
}

func (p Program) tellTrial(c *cli.Command, rep trial.Report) error {
	if c.Bool("json") {
		return json.NewEncoder(p.Out).Encode(rep)
	}
	for _, i := range rep.Incidents {
		if err := p.say("%8.3f s  %s", i.At.Seconds(), i.What); err != nil {
			return err
		}
	}
	if err := errors.Join(p.table(postsOf(rep)), p.say(""), p.table(livesOf(rep)), p.say(""), p.sumUp(rep)); err != nil {
		return err
	}
	for _, v := range rep.Violations {
		if err := p.say("VIOLATED: %s", v); err != nil {
			return err
		}
	}
	return p.say("")
}

func postsOf(rep trial.Report) table {
	t := table{{"INSTANCE", "SERVED", "P50 ms", "P99 ms"}}
	for _, i := range rep.Posts {
		t = append(t, []string{i.Name, count(i.Served), fmt.Sprintf("%.1f", i.P50), fmt.Sprintf("%.1f", i.P99)})
	}
	return t
}

func livesOf(rep trial.Report) table {
	t := table{{"LIFE", "INCARNATION", "KILLED", "SERVED", "COUNTED", "BILLED UNANSWERED", "AT MOST"}}
	for _, l := range rep.Lives {
		killed := ""
		if l.Killed {
			killed = "yes"
		}
		t = append(t, []string{l.Name, l.Incarnation, killed, count(l.Served), count(l.Counted), count(l.Unanswered), count(l.InFlight + l.Open)})
	}
	return t
}

func (p Program) sumUp(rep trial.Report) error {
	return p.record(
		"seed", strconv.FormatUint(rep.Seed, 10),
		"cap", count(rep.Cap),
		"answered", fmt.Sprintf("%s in %.1f s: %s with 200, %s with 429", count(rep.Answered), rep.Seconds, count(rep.Served), count(rep.Spent)),
		"tried again", count(rep.Again),
		"counted", fmt.Sprintf("%s by the log, in %s ticks of which %s void; %s refunded", count(rep.Counted), count(rep.Ticks), count(rep.Void), count(rep.Refunded)),
		"served a second", count(int64(rep.PerSecond)),
	)
}

func count(n int64) string { return grouped(int(n)) }
