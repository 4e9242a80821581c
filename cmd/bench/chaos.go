package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/bench/chaos"
	"lieudit/cmd/terminal"
)

const chaosHelp = `Real processes of this program serve several accounts whose clients synchronise large sets, write single sites, search, and
issue and revoke keys. Instances are killed (kill -9) meanwhile, and one part at a time fails besides: the disk is full
(as root: the data folder is a small file system of its own), descriptors are few, Postgres is frozen or stopped, the
log is silent or killed. After each round, with everything healthy again: every account answers and takes a write that
is found; what was acknowledged is there, and of what was not either all or nothing; revoked keys are refused; every
read model moves; reconcile agrees; bills and quotas hold. In the end every site's history is whole, and read models
that are made again from the log are the same. Exit 1 when any of that does not hold, or the time is up too soon.

  go run ./cmd/bench chaos
  go run ./cmd/bench chaos --kills 20 --profile embedded --seed 7`

func (p program) benchChaosCommand() *cli.Command {
	return &cli.Command{
		Name:        "chaos",
		Usage:       "Prove that kills, a full disk, an absent Postgres and a silent log lose nothing that was acknowledged",
		Description: chaosHelp,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "kills", Value: 200, Usage: "`HOW MANY` instances are killed, over all profiles", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "per-round", Value: 10, Usage: "`HOW MANY` kills there are between two checks", Validator: terminal.AtLeastOne},
			&cli.StringSliceFlag{Name: "profile", Value: []string{string(chaos.Embedded), string(chaos.Servers)}, Usage: "`PROFILES` to run: embedded, servers", Validator: terminal.Each(terminal.OneOf(string(chaos.Embedded), string(chaos.Servers)))},
			&cli.IntFlag{Name: "instances", Value: 2, Usage: "`HOW MANY` instances share the servers", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "rows", Value: 3000, Usage: "`ROWS` of the largest sync, at most 6000", Validator: atMost(6000)},
			&cli.IntFlag{Name: "minutes", Value: 30, Usage: "`MINUTES` after which the run gives up", Validator: terminal.AtLeastOne},
			&cli.Uint64Flag{Name: "seed", Usage: "`SEED` of what is done; chosen when left out", HideDefault: true},
			&cli.BoolFlag{Name: "keep-going", Usage: "go on after a round in which something did not hold"},
			&cli.BoolFlag{Name: "keep", Usage: "leave the data and what the processes said in --dir"},
			&cli.StringFlag{Name: "dir", Value: ".", Usage: "`FOLDER` on the disk to use", TakesFile: true},
			&cli.BoolFlag{Name: "json", Usage: "print the report as one line of JSON"},
		},
		Action: p.runChaos,
	}
}

// atMost refuses what is not between 1 and a number.
func atMost(most int) func(int) error {
	return func(n int) error {
		if n > most {
			return fmt.Errorf("it is at most %d", most)
		}
		return terminal.AtLeastOne(n)
	}
}

var errPromiseBroken = errors.New("the service did not hold what it promises")

func (p program) runChaos(ctx context.Context, c *cli.Command) error {
	o := chaos.Options{
		Dir: c.String("dir"), Kills: c.Int("kills"), MaxKillsPerRound: c.Int("per-round"), Instances: c.Int("instances"), Rows: c.Int("rows"),
		Seed: c.Uint64("seed"), TimeLimit: time.Duration(c.Int("minutes")) * time.Minute, KeepGoing: c.Bool("keep-going"), KeepData: c.Bool("keep"),
		MaxPause: 3500 * time.Millisecond, MinOutage: 5 * time.Second, LongOutage: 50 * time.Second,
		Log: func(what string) { fmt.Fprintln(p.Err, what) },
	}
	for _, name := range c.StringSlice("profile") {
		o.Profiles = append(o.Profiles, chaos.Profile(name))
	}
	if !c.IsSet("seed") {
		o.Seed = rand.Uint64() >> 12 // every JSON reader's numbers hold it
	}
	rep, err := chaos.Run(ctx, o)
	if len(rep.Violations) > 0 {
		err = errors.Join(err, errPromiseBroken)
	}
	return errors.Join(p.printChaosReport(c, rep), err)
}

func (p program) printChaosReport(c *cli.Command, rep chaos.Report) error {
	if c.Bool("json") {
		return json.NewEncoder(p.Out).Encode(rep)
	}
	t := terminal.Table{{"PROFILE", "KILLS", "NODE KILLS", "ROUNDS", "REQUESTS", "5XX", "UNANSWERED", "WRITES", "IN DOUBT", "LARGE SYNCS CUT", "REVOKED", "ACCOUNTS", "SITES", "BILLED", "NOT ANSWERED", "NOT LISTED", "SECONDS"}}
	for _, name := range []chaos.Profile{chaos.Embedded, chaos.Servers} {
		if f, ran := rep.Totals[name]; ran {
			row := []string{string(name)}
			for _, n := range []int{f.Kills, f.NodeKills, f.Rounds, f.Requests, f.Failed, f.Unanswered, f.Acknowledged, f.InDoubt, f.Cut, f.Revocations, f.Accounts, f.Sites, int(f.Billed), int(f.BilledUnanswered), int(f.Unlisted), int(f.Seconds)} {
				row = append(row, terminal.GroupThousands(n))
			}
			t = append(t, row)
		}
	}
	err := errors.Join(p.PrintTable(t), p.PrintLine(""), p.PrintFields("seed", strconv.FormatUint(rep.Seed, 10)))
	for _, what := range rep.LeftOut {
		err = errors.Join(err, p.PrintLine("LEFT OUT: %s", what))
	}
	for _, v := range rep.Violations {
		err = errors.Join(err, p.PrintLine("VIOLATED: %s", v))
	}
	return err
}
