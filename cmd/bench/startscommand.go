package main

import (
	"context"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/bench/api"
	"lieudit/cmd/bench/measure"
	"lieudit/cmd/bench/starts"
	"lieudit/cmd/terminal"
)

// startsCommand measures what many requests on the log cost a start.
func (p program) startsCommand() *cli.Command {
	return p.newFigureCommand(&cli.Command{
		Name:  "starts",
		Usage: "Measure how long an instance takes to start on a log with many requests",
		Description: `The log is written first: accounts, the first request of each by the service's own meter, and ticks of as many requests as
the service would write them. Then an instance starts with nothing but the log and its vault, again after it was stopped, and
again after it was killed. VALUE is the time until /readyz answers 200, which is when all read models have caught up; RAW is
that of reading all events of usage through the same client. In the end the requests that the service shows for each account
must be those that were written.

With --form own each period has a stream of its own, as before log format 6: with many accounts a request is an event.

  go run ./cmd/bench starts
  go run ./cmd/bench starts --log node --per-tick 2
  go run ./cmd/bench starts --log journal --requests 100000000
  go run ./cmd/bench starts --log node --form own --profile starts.pprof`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "log", Value: []string{api.Journal, api.Node}, Usage: "`LOG` of the service: journal, node", Validator: terminal.Each(terminal.OneOf(api.Journal, api.Node))},
			&cli.StringSliceFlag{Name: "form", Value: []string{starts.SharedStreams}, Usage: "`FORM` of the log: shared, own", Validator: terminal.Each(terminal.OneOf(starts.SharedStreams, starts.OwnStreams))},
			&cli.IntFlag{Name: "accounts", Value: 2000, Usage: "`HOW MANY` accounts", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "requests", Value: 1_000_000, Usage: "`HOW MANY` requests are on the log", Validator: terminal.AtLeastOne},
			// As many as wait for one append on average when 64 connections ask.
			&cli.IntFlag{Name: "per-tick", Value: 31, Usage: "`REQUESTS` of a tick in a shared stream", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "shards", Value: 1, Usage: "over `HOW MANY` shared streams the accounts are spread", Validator: terminal.AtLeastOne},
			&cli.BoolFlag{Name: "reconcile", Usage: "have the service fold the log again in the end and find no difference"},
			&cli.StringFlag{Name: "profile", Usage: "`FILE` for a profile of ten seconds of the last log's first start", TakesFile: true},
		},
	}, func(ctx context.Context, c *cli.Command, dir string, out measure.Output) error {
		for _, log := range c.StringSlice("log") {
			for _, form := range c.StringSlice("form") {
				if err := starts.Run(ctx, dir, starts.Options{
					Log: log, Form: form, Accounts: c.Int("accounts"), Requests: c.Int("requests"), RequestsPerTick: c.Int("per-tick"),
					Shards: c.Int("shards"), Reconcile: c.Bool("reconcile"), Profile: c.String("profile"),
				}, out); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
