package main

import (
	"context"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/bench/fairness"
	"lieudit/cmd/bench/measure"
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
