package main

import (
	"context"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/bench/fairness"
	"lieudit/cmd/bench/measure"
	"lieudit/cmd/bench/scale"
	"lieudit/cmd/terminal"
)

// fairnessCommand measures what one account that floods costs another.
func (p program) fairnessCommand() *cli.Command {
	return p.newFigureCommand(&cli.Command{
		Name:  "fairness",
		Usage: "Measure how long a quiet account waits while another one floods",
		Description: `A quiet account asks at a fixed rate while another account floods: "exhausted" is as many requests beyond its quota as its
connections can send, "served" a fixed rate of requests within it. VALUE is the quiet account's p99 with the flood, RAW
without it, RATIO how many times longer it waits. The empty handler is flooded as much: its p99 is what the machine costs.

The two accounts pay for themselves ("two" contracts), are sub-clients of "one agency", or of "two agencies". Clients and service share the machine.

  go run ./cmd/bench fairness
  go run ./cmd/bench fairness --flood exhausted --log journal --contracts two --turns 5 --json`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "log", Value: []string{fairness.Journal, fairness.Node}, Usage: "`LOG` of the service: journal, node", Validator: terminal.Each(terminal.OneOf(fairness.Journal, fairness.Node))},
			&cli.StringSliceFlag{Name: "contracts", Value: []string{fairness.TwoContracts, fairness.OneAgency, fairness.TwoAgencies}, Usage: "`WHO` pays: two, one agency, two agencies", Validator: terminal.Each(terminal.OneOf(fairness.TwoContracts, fairness.OneAgency, fairness.TwoAgencies))},
			&cli.StringSliceFlag{Name: "flood", Value: []string{fairness.Exhausted, fairness.Served}, Usage: "`FLOOD`: exhausted, served", Validator: terminal.Each(terminal.OneOf(fairness.Exhausted, fairness.Served))},
			&cli.IntFlag{Name: "connections", Value: 64, Usage: "`HOW MANY` connections flood", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "flood-rate", Value: 10_000, Usage: "`REQUESTS` a second of the flood that is served", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "quiet-rate", Value: 50, Usage: "`REQUESTS` a second of the quiet account", Validator: terminal.AtLeastOne},
			&cli.StringFlag{Name: "path", Value: "/me", Usage: "`PATH` that is asked for"},
			&cli.IntFlag{Name: "seconds", Value: 6, Usage: "`SECONDS` of a turn", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "turns", Value: 5, Usage: "`TURNS` for each figure", Validator: terminal.AtLeastOne},
		},
	}, func(ctx context.Context, c *cli.Command, dir string, out measure.Output) error {
		return fairness.Run(ctx, dir, fairness.Options{
			Logs: c.StringSlice("log"), Contracts: c.StringSlice("contracts"), Floods: c.StringSlice("flood"),
			Connections: c.Int("connections"), FloodRate: c.Int("flood-rate"), QuietRate: c.Int("quiet-rate"), Path: c.String("path"),
			RoundDuration: time.Duration(c.Int("seconds")) * time.Second, Rounds: c.Int("turns"),
		}, out)
	})
}

// scaleCommand measures what many accounts cost that mostly sleep.
func (p program) scaleCommand() *cli.Command {
	return p.newFigureCommand(&cli.Command{
		Name:  "scale",
		Usage: "Measure what many accounts and keys cost: memory, start, first requests, idleness",
		Description: `The accounts and keys are written to the log of a node by the codec and the journal of the service. Then instances start one
after the other, with empty folders, with read models but without the snapshot of the key ring, and with both, and are asked for
accounts that sleep. The processor
time of doing nothing is measured before and after that. It leaves nothing behind.

  go run ./cmd/bench scale
  go run ./cmd/bench scale --accounts 1000 --keys 10000 --instances 1 --json`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "accounts", Value: 100_000, Usage: "`HOW MANY` accounts", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "keys", Value: 1_000_000, Usage: "`HOW MANY` keys, of all accounts together", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "instances", Value: 3, Usage: "`HOW MANY` instances share the node", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "first-requests", Value: 2000, Usage: "`HOW MANY` accounts are woken at each instance", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "idle", Value: 20, Usage: "`SECONDS` of doing nothing", Validator: terminal.AtLeastOne},
		},
	}, func(ctx context.Context, c *cli.Command, dir string, out measure.Output) error {
		if c.Int("keys") < c.Int("accounts") {
			return terminal.NewUsageError(c, "--keys is at least --accounts: each account has a key")
		}
		return scale.Run(ctx, dir, scale.Options{
			Accounts: c.Int("accounts"), Keys: c.Int("keys"), Instances: c.Int("instances"),
			FirstRequests: c.Int("first-requests"), Idle: time.Duration(c.Int("idle")) * time.Second,
		}, out)
	})
}
