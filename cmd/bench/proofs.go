package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/bench/chaos"
	"lieudit/cmd/bench/metering"
	"lieudit/cmd/terminal"
)

// The commands of this file are tests: they print a report, and return one of these errors, for exit code 1, where the report
// has violations.
var (
	errNotExact      = errors.New("metering was not exact")
	errPromiseBroken = errors.New("the service did not hold what it promises")
)

// The parts of the usage command.
const (
	proofPart   = "proof"
	figuresPart = "figures"
)

// usageCommand tests that metering is exact and measures what it costs. It has the shorter name meter too.
func (p program) usageCommand() *cli.Command {
	return &cli.Command{
		Name:    "usage",
		Aliases: []string{"meter"},
		Usage:   "Prove that requests are admitted once, billed once and capped exactly, and measure what that costs",
		Description: `The proof takes seconds. Real processes of this program share one node and several contracts with small quotas, the last an
agency with three sub-clients, two of which have quotas of their own. Clients at every instance ask for the first --path,
for all contracts in turn, until so many requests are answered; a 503 or a broken connection is tried again. Then the log
is folded again: never more than a cap, of an account or of an agency with its sub-clients, every 200 on the log, nothing
counted twice, nothing refused below a cap; billed without an answer at most what was on its way when a process was
killed. Each instance reconciles its read models in the end, finds nothing, and bills what the log counts. Exit 1 when any
of that does not hold.

With --chaos every instance and the node are killed (kill -9) and started again at random moments, and 5 % of
the appends lose their connection, half before the node has them, half with the answer on its way.

The figures take minutes: requests a second beside an empty handler, events and megabytes of the usage log for a million
requests, microseconds of processor for one, as in bench api. They are left out with --chaos and with several runs.

  go run ./cmd/bench usage
  go run ./cmd/bench usage --chaos --runs 20
  go run ./cmd/bench usage --chaos --contracts 1 --cap 20000 --requests 60000 --seed 7 --json
  go run ./cmd/bench usage --only figures --connections 1,64 --log journal --seconds 1`,
		Flags: append([]cli.Flag{
			&cli.StringSliceFlag{Name: "only", Value: []string{proofPart, figuresPart}, Usage: "`PARTS` to run: proof, figures", HideDefault: true, Validator: terminal.Each(terminal.OneOf(proofPart, figuresPart))},
			&cli.BoolFlag{Name: "chaos", Usage: "kill processes and cut connections in the middle of the proof"},
			&cli.IntFlag{Name: "instances", Value: 3, Usage: "`HOW MANY` instances share the node of the proof", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "clients", Value: 64, Usage: "`HOW MANY` clients ask each of them", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "contracts", Value: 4, Usage: "`HOW MANY` contracts pay; 1 is a single account, from 2 on the last is an agency", Validator: terminal.AtLeastOne},
			&cli.Int64Flag{Name: "cap", Value: 10_000, Usage: "`REQUESTS` the last contract has, the others less; above what DISCOVERY may have the plan is BUSINESS"},
			&cli.Int64Flag{Name: "requests", Value: 15_000, Usage: "`REQUESTS` to be answered for each contract, of all clients together"},
			&cli.IntFlag{Name: "runs", Value: 1, Usage: "`HOW MANY` times the proof is made, each on a log of its own", Validator: terminal.AtLeastOne},
			&cli.Uint64Flag{Name: "seed", Usage: "`SEED` of the first run's chaos, one more for each run after it; chosen when left out", HideDefault: true},
			&cli.StringFlag{Name: "postgres", Usage: "Postgres for the read models of the proof, as `postgres://…`, empty; SQLite when left out"},
			&cli.StringFlag{Name: "dir", Value: ".", Usage: "`FOLDER` on the disk to use", TakesFile: true},
			&cli.BoolFlag{Name: "json", Usage: "print one line of JSON a run and a figure"},
		}, apiFlags("/me", "/address/verify?q=12+avenue+Foch+48000+Mende")...),
		Before: checkAPIFlags,
		Action: p.proveAndMeasureMetering,
	}
}

// proveAndMeasureMetering runs the parts that are asked for. The figures are also printed after a violation, which may have its
// cause in what they show.
func (p program) proveAndMeasureMetering(ctx context.Context, c *cli.Command) (err error) {
	parts := c.StringSlice("only")
	if slices.Contains(parts, proofPart) {
		if err = p.proveMetering(ctx, c); err != nil && !errors.Is(err, errNotExact) {
			return err
		}
	}
	isOneProof := !c.Bool("chaos") && c.Int("runs") == 1
	if slices.Contains(parts, figuresPart) && (isOneProof || c.IsSet("only")) {
		err = errors.Join(err, p.printFigures(ctx, c, measureAPI))
	}
	return err
}

// seedOf returns the seed that was given, or a random one of 52 bits.
func seedOf(c *cli.Command) uint64 {
	if c.IsSet("seed") {
		return c.Uint64("seed")
	}
	// A JSON reader may make a float64 of the seed in a report. It holds 52 bits exactly.
	return rand.Uint64() >> 12
}

// proveMetering runs the test as often as --runs says, each time with the next seed. It continues after a violation: how many
// runs have one helps to find its cause. An error of a run itself ends it.
func (p program) proveMetering(ctx context.Context, c *cli.Command) error {
	o := metering.Options{
		Dir: c.String("dir"), Postgres: c.String("postgres"), Path: c.StringSlice("path")[0], Chaos: c.Bool("chaos"), Seed: seedOf(c),
		Instances: c.Int("instances"), Connections: c.Int("clients"), Contracts: c.Int("contracts"), Cap: c.Int64("cap"), Requests: c.Int64("requests"),
	}
	switch {
	case o.Cap < 1 || o.Requests < 1:
		return terminal.NewUsageError(c, "--cap and --requests are at least 1")
	case o.Postgres != "" && c.Int("runs") > 1:
		// Read models that were filled from the log of the first run would not fit that of the second.
		return terminal.NewUsageError(c, "--postgres is of one run: every run has a log of its own, and a database is of one log")
	}
	// A violation is returned only after the last run.
	var violated error
	for range c.Int("runs") {
		rep, err := metering.Run(ctx, o)
		if err != nil {
			return err
		}
		if len(rep.Violations) > 0 {
			violated = errNotExact
		}
		if c.Bool("json") {
			err = p.PrintJSON(rep)
		} else {
			err = p.printMeteringReport(rep)
		}
		if err != nil {
			return err
		}
		o.Seed++
	}
	return violated
}

// printMeteringReport prints the incidents but cut connections, which it counts, tables of contracts, of instances and of their processes, the totals and the violations.
func (p program) printMeteringReport(rep metering.Report) (err error) {
	cuts := int64(0)
	for _, i := range rep.Incidents {
		if i.Cut {
			cuts++
			continue
		}
		err = errors.Join(err, p.PrintLine("%8.3f s  %s", i.At.Seconds(), i.What))
	}
	count := func(n int64) string { return terminal.GroupThousands(int(n)) }
	contracts := terminal.Table{{"CONTRACT", "ACCOUNT", "CAP", "SERVED", "REFUSED", "COUNTED", "COUNTED AT MOST"}}
	for _, c := range rep.Contracts {
		contracts = append(contracts, []string{c.ID, "", count(c.Cap), count(c.Served), count(c.Refused), count(c.Counted), count(c.MaxCounted)})
		for _, a := range c.Accounts {
			contracts = append(contracts, []string{c.ID, a.ID, count(a.Cap), count(a.Served), count(a.Refused), count(a.Counted), count(a.MaxCounted)})
		}
	}
	instances := terminal.Table{{"INSTANCE", "SERVED", "P50 ms", "P99 ms"}}
	for _, i := range rep.Instances {
		instances = append(instances, []string{i.Name, count(i.Served), fmt.Sprintf("%.1f", i.P50), fmt.Sprintf("%.1f", i.P99)})
	}
	// The table shows a process as a life of its instance, and its id as an incarnation: the words of reports and of the log.
	processes := terminal.Table{{"LIFE", "INCARNATION", "KILLED", "SERVED", "COUNTED", "BILLED UNANSWERED", "AT MOST"}}
	for _, process := range rep.Processes {
		processes = append(processes, []string{process.Name, process.InstanceID, terminal.EmptyIf(!process.Killed, "yes"), count(process.Served), count(process.Counted), count(process.BilledUnanswered), count(process.InFlight + process.OpenRefunds)})
	}
	err = errors.Join(err, p.PrintTable(contracts), p.PrintLine(""), p.PrintTable(instances), p.PrintLine(""), p.PrintTable(processes), p.PrintLine(""), p.PrintFields(
		"seed", strconv.FormatUint(rep.Seed, 10),
		"cap", count(rep.Cap),
		"answered", fmt.Sprintf("%s in %.1f s: %s with 200, %s with 429", count(rep.Answered), rep.Seconds, count(rep.Served), count(rep.Refused)),
		"tried again", fmt.Sprintf("%s after a 503 or a broken connection; connections to the node were cut %s times", count(rep.Retried), count(cuts)),
		"not listed", fmt.Sprintf("%s billed without an answer that reconcile does not list", count(rep.Unlisted)),
		"counted", fmt.Sprintf("%s by the log, in %s ticks of which %s void; %s refunded", count(rep.Counted), count(rep.Ticks), count(rep.VoidTicks), count(rep.Refunded)),
		"served a second", count(int64(rep.PerSecond)),
	))
	return errors.Join(err, p.printViolations(rep.Violations), p.PrintLine(""))
}

// printViolations prints one line a violation.
func (p program) printViolations(violations []string) (err error) {
	for _, v := range violations {
		err = errors.Join(err, p.PrintLine("VIOLATED: %s", v))
	}
	return err
}

// chaosCommand tests the whole service while its processes are killed and what they depend on fails.
func (p program) chaosCommand() *cli.Command {
	return &cli.Command{
		Name:  "chaos",
		Usage: "Prove that kills, a full disk, an absent Postgres and a silent log lose nothing that was acknowledged",
		Description: `Real processes of this program serve several accounts whose clients synchronise large sets, write single sites, search, and
issue and revoke keys. Instances are killed (kill -9) meanwhile, and one part at a time fails besides: the disk is full
(as root: the data folder is a small file system of its own), descriptors are few, Postgres is frozen or stopped, the
log is silent or killed. After each round, with everything healthy again: every account answers and takes a write that
is found; what was acknowledged is there, and of what was not either all or nothing; revoked keys are refused; every
read model moves; reconcile agrees; bills and quotas hold. In the end every site's history is whole, and read models
that are made again from the log are the same. Exit 1 when any of that does not hold, or the time is up too soon.

  go run ./cmd/bench chaos
  go run ./cmd/bench chaos --kills 20 --profile embedded --seed 7`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "kills", Value: 200, Usage: "`HOW MANY` instances are killed, over all profiles", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "per-round", Value: 10, Usage: "`HOW MANY` kills there are between two checks", Validator: terminal.AtLeastOne},
			&cli.StringSliceFlag{Name: "profile", Value: []string{string(chaos.Embedded), string(chaos.Servers)}, Usage: "`PROFILES` to run: embedded, servers", Validator: terminal.Each(terminal.OneOf(string(chaos.Embedded), string(chaos.Servers)))},
			&cli.IntFlag{Name: "instances", Value: 2, Usage: "`HOW MANY` instances share the servers", Validator: terminal.AtLeastOne},
			// An account has a referential of that many sites and one of half as many: with 6,000 they fit a BUSINESS plan.
			&cli.IntFlag{Name: "rows", Value: 3000, Usage: "`ROWS` of the largest sync, at most 6000", Validator: atMost(6000)},
			&cli.IntFlag{Name: "minutes", Value: 30, Usage: "`MINUTES` after which the run gives up", Validator: terminal.AtLeastOne},
			&cli.Uint64Flag{Name: "seed", Usage: "`SEED` of what is done; chosen when left out", HideDefault: true},
			&cli.BoolFlag{Name: "keep-going", Usage: "go on after a round in which something did not hold"},
			&cli.BoolFlag{Name: "keep", Usage: "leave the data and what the processes said in --dir"},
			&cli.StringFlag{Name: "dir", Value: ".", Usage: "`FOLDER` on the disk to use", TakesFile: true},
			&cli.BoolFlag{Name: "json", Usage: "print the report as one line of JSON"},
		},
		Action: p.proveDurability,
	}
}

// atMost returns a validator that refuses a number that is not between 1 and most.
func atMost(most int) func(int) error {
	return func(n int) error {
		if n > most {
			return fmt.Errorf("it is at most %d", most)
		}
		return terminal.AtLeastOne(n)
	}
}

// proveDurability runs the chaos test. The report is printed after an error too, because the violations until then are true.
// The lines of the run's log go to standard error, so that standard output holds only the report.
func (p program) proveDurability(ctx context.Context, c *cli.Command) error {
	o := chaos.Options{
		Dir: c.String("dir"), Kills: c.Int("kills"), MaxKillsPerRound: c.Int("per-round"), Instances: c.Int("instances"), Rows: c.Int("rows"),
		Seed: seedOf(c), TimeLimit: time.Duration(c.Int("minutes")) * time.Minute, KeepGoing: c.Bool("keep-going"), KeepData: c.Bool("keep"),
		// Between two kills there is time for a start and some writes. The command has no flags for these three.
		MaxPause: 3500 * time.Millisecond, MinOutage: 5 * time.Second, LongOutage: 50 * time.Second,
		Log: func(what string) { fmt.Fprintln(p.Err, what) },
	}
	for _, name := range c.StringSlice("profile") {
		o.Profiles = append(o.Profiles, chaos.Profile(name))
	}
	// A report with violations makes exit code 1 also where the run itself was completed.
	rep, err := chaos.Run(ctx, o)
	if len(rep.Violations) > 0 {
		err = errors.Join(err, errPromiseBroken)
	}
	if c.Bool("json") {
		return errors.Join(p.PrintJSON(rep), err)
	}
	return errors.Join(p.printChaosReport(rep), err)
}

// printChaosReport prints a table with the totals of each profile that ran, what was left out, and the violations.
// What was left out matters to a reader: a fault that this machine does not allow was not tested.
func (p program) printChaosReport(rep chaos.Report) error {
	// The columns are in the order of the numbers of a row below.
	t := terminal.Table{{"PROFILE", "KILLS", "NODE KILLS", "ROUNDS", "REQUESTS", "5XX", "UNANSWERED", "WRITES", "IN DOUBT", "LARGE SYNCS CUT", "REVOKED", "ACCOUNTS", "SITES", "BILLED", "NOT ANSWERED", "NOT LISTED", "SECONDS"}}
	for _, name := range []chaos.Profile{chaos.Embedded, chaos.Servers} {
		if totals, ran := rep.Totals[name]; ran {
			row := []string{string(name)}
			for _, n := range []int{totals.Kills, totals.NodeKills, totals.Rounds, totals.Requests, totals.Failed, totals.Unanswered, totals.Acknowledged, totals.InDoubt, totals.Cut, totals.Revocations, totals.Accounts, totals.Sites, int(totals.Billed), int(totals.BilledUnanswered), int(totals.Unlisted), int(totals.Seconds)} {
				row = append(row, terminal.GroupThousands(n))
			}
			t = append(t, row)
		}
	}
	err := errors.Join(p.PrintTable(t), p.PrintLine(""), p.PrintFields("seed", strconv.FormatUint(rep.Seed, 10)))
	for _, what := range rep.LeftOut {
		err = errors.Join(err, p.PrintLine("LEFT OUT: %s", what))
	}
	return errors.Join(err, p.printViolations(rep.Violations))
}
