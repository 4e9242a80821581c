package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/bench/api"
	"lieudit/cmd/bench/journal"
	"lieudit/cmd/bench/locations"
	"lieudit/cmd/bench/measure"
	"lieudit/cmd/terminal"
)

// runBenchmark is the part of a command that differs from the others: it turns the flags into options and measures. dir is a
// folder for this run only; out receives the figures.
type runBenchmark func(ctx context.Context, c *cli.Command, dir string, out measure.Output) error

// newFigureCommand completes a command that measures figures. It adds the flags --dir and --json, makes the folder and
// removes it afterwards, and shows a progress bar. With --json each figure is printed as one line as soon as it is
// measured. Without, all figures are printed as tables at the end, so an error leaves none of them.
func (p program) newFigureCommand(c *cli.Command, run runBenchmark) *cli.Command {
	c.Flags = append(c.Flags,
		&cli.StringFlag{Name: "dir", Value: ".", Usage: "`FOLDER` on the disk to use", TakesFile: true},
		&cli.BoolFlag{Name: "json", Usage: "print one line of JSON a figure"})
	c.Action = func(ctx context.Context, c *cli.Command) error { return p.printFigures(ctx, c, run) }
	return c
}

// printFigures runs a measurement and prints its figures, as the flags --dir and --json say.
func (p program) printFigures(ctx context.Context, c *cli.Command, run runBenchmark) (err error) {
	dir, err := os.MkdirTemp(c.String("dir"), "lieudit-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// The bar is cleared before the tables are printed, and also after an error.
	bar := p.NewProgressBar()
	defer bar.Clear()
	var figures measure.Table
	out := measure.Output{
		Progress: func(what string, done, total int) { bar.Update(what, int64(done), int64(total)) },
		Report: func(f measure.Figure) error {
			if c.Bool("json") {
				return p.PrintJSON(f)
			}
			figures.Add(f)
			return nil
		},
	}
	if err := run(ctx, c, dir, out); err != nil {
		return err
	}
	bar.Clear()
	// With --json the tables are empty: everything is printed.
	for n, t := range figures.Tables() {
		if n > 0 {
			err = errors.Join(err, p.PrintLine(""))
		}
		err = errors.Join(err, p.PrintTable(t))
	}
	return err
}

// journalCommand measures the journal. The command is called log, the word for it in all documents.
func (p program) journalCommand() *cli.Command {
	return p.newFigureCommand(&cli.Command{
		Name:  "log",
		Usage: "Measure the journal: durable appends, catch-up read, opening",
		Description: `Journal and raw limit take turns on the same disk; a figure is the median of its turns. It takes about a
minute and leaves nothing behind.

  go run ./cmd/bench log
  go run ./cmd/bench log --dir /var/lib --json`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "events", Value: 1_000_000, Usage: "`HOW MANY` events the log holds that is read and opened", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "turns", Value: 5, Usage: "`TURNS` of half a second for each figure", Validator: terminal.AtLeastOne},
		},
	}, func(ctx context.Context, c *cli.Command, dir string, out measure.Output) error {
		// Half a second is enough for some thousand syncs of a disk.
		return journal.Run(ctx, dir, journal.Options{Rounds: c.Int("turns"), RoundDuration: 500 * time.Millisecond, Events: c.Int("events")}, out)
	})
}

// validateParsed makes a flag's validator of the function that parses its text. The text is parsed again where it is used,
// because a validator cannot return a value.
func validateParsed[T any](parse func(string) (T, error)) func(string) error {
	return func(text string) error {
		_, err := parse(text)
		return err
	}
}

// parseSizes parses sizes such as 10k,1M: whole numbers from 1 to 100 million, k for thousands and M for millions.
func parseSizes(text string) (all []int, err error) {
	// The bound is far above the 26 million rows of the whole address base.
	for size := range strings.SplitSeq(text, ",") {
		size = strings.TrimSpace(size)
		factor := 1
		switch {
		case strings.HasSuffix(size, "k"):
			factor = 1_000
		case strings.HasSuffix(size, "M"):
			factor = 1_000_000
		}
		number := size
		if factor > 1 {
			number = size[:len(size)-1]
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n*factor > 100_000_000 {
			return nil, fmt.Errorf("%q is no size such as 10k or 1M", size)
		}
		all = append(all, n*factor)
	}
	return all, nil
}

// apiCommand measures the API over HTTP.
func (p program) apiCommand() *cli.Command {
	return p.newFigureCommand(&cli.Command{
		Name:  "api",
		Usage: "Measure the API over HTTP, metered and durable, beside an empty handler",
		Description: `The service (keys checked, every request counted durably, read models filled) and an empty net/http handler are
processes of their own and take turns under the same clients; a figure is the median of its turns. The last columns are
the events and the megabytes that a million requests write to the usage log, and the microseconds of processor that one
request takes in the service, its node and the empty handler. It leaves nothing behind, but for what it wrote to a server
that is named.

  go run ./cmd/bench api
  go run ./cmd/bench api --connections 64 --log node --seconds 5 --json
  go run ./cmd/bench api --log eventstore --eventstore 'esdb://127.0.0.1:2113?tls=false'`,
		Flags:  apiFlags("/me", "/address/autocomplete?q=rue+de+la+mairie"),
		Before: checkAPIFlags,
	}, measureAPI)
}

// apiFlags are the flags of a measurement of the API over HTTP. The paths are those that it asks for unless told otherwise.
func apiFlags(paths ...string) []cli.Flag {
	return []cli.Flag{
		&cli.IntSliceFlag{Name: "connections", Value: []int{1, 16, 64, 256}, Usage: "`HOW MANY` clients", Validator: terminal.Each(terminal.AtLeastOne)},
		&cli.IntSliceFlag{Name: "accounts", Value: []int{1, 1000}, Usage: "over `HOW MANY` accounts the requests are spread", Validator: terminal.Each(terminal.AtLeastOne)},
		&cli.StringSliceFlag{Name: "log", Value: []string{api.Journal, api.Node}, Usage: "`LOG` of the service: journal, node, eventstore", Validator: terminal.Each(terminal.OneOf(api.Journal, api.Node, api.EventStore))},
		&cli.StringFlag{Name: "eventstore", Usage: "`URL` of an EventStoreDB or a node to measure besides, as esdb://…; alone with --log eventstore"},
		&cli.StringSliceFlag{Name: "path", Value: paths, Usage: "`PATH` that is asked for"},
		&cli.IntFlag{Name: "seconds", Value: 2, Usage: "`SECONDS` of a turn", Validator: terminal.AtLeastOne},
		&cli.IntFlag{Name: "turns", Value: 3, Usage: "`TURNS` for each figure", Validator: terminal.AtLeastOne},
	}
}

// checkAPIFlags refuses a server that is to be measured and has no address.
func checkAPIFlags(ctx context.Context, c *cli.Command) (context.Context, error) {
	if c.String("eventstore") == "" && slices.Contains(c.StringSlice("log"), api.EventStore) {
		return ctx, terminal.NewUsageError(c, "--log eventstore needs the address of one: --eventstore URL")
	}
	return ctx, nil
}

// measureAPI measures what apiFlags say. A turn is one round of measure.Medians.
func measureAPI(ctx context.Context, c *cli.Command, dir string, out measure.Output) error {
	logs := c.StringSlice("log")
	if c.String("eventstore") != "" && !slices.Contains(logs, api.EventStore) {
		logs = append(logs, api.EventStore)
	}
	return api.Run(ctx, dir, api.Options{
		Logs: logs, EventStoreURL: c.String("eventstore"), Paths: c.StringSlice("path"), Accounts: c.IntSlice("accounts"), Connections: c.IntSlice("connections"),
		RoundDuration: time.Duration(c.Int("seconds")) * time.Second, Rounds: c.Int("turns"),
	}, out)
}

// locationsCommand measures customers' sites over HTTP. --crowd gives the groups of accounts that are searched.
func (p program) locationsCommand() *cli.Command {
	return p.newFigureCommand(&cli.Command{
		Name:  "locations",
		Usage: "Measure customers' places over HTTP: sync, freshness, search",
		Description: `A service of its own is filled with invented shops and asked over HTTP: whole sets are synchronised (first, the same again,
one in a hundred changed), a write is looked for until it is found, and accounts are searched. It leaves nothing behind, but
for what it wrote to servers that are named.

  go run ./cmd/bench locations
  go run ./cmd/bench locations --log node --postgres postgres://… --crowd 100x10000 --json`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "log", Value: api.Journal, Usage: "`LOG` of the service: journal, node", Validator: terminal.OneOf(api.Journal, api.Node)},
			&cli.StringFlag{Name: "postgres", Usage: "read models in the database at `URL`, which must be empty"},
			&cli.StringFlag{Name: "meilisearch", Usage: "search by the Meilisearch at `URL`"},
			&cli.IntFlag{Name: "sites", Value: 10_000, Usage: "`HOW MANY` sites a sync has, at most 11000", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "turns", Value: 3, Usage: "`TURNS` of each kind of sync", Validator: terminal.AtLeastOne},
			&cli.StringSliceFlag{Name: "crowd", Value: []string{"1x11000", "100x10000", "10000x100"}, Usage: "`ACCOUNTSxSITES` that are searched", Validator: terminal.Each(validateParsed(parseGroup))},
			&cli.IntFlag{Name: "connections", Value: 2, Usage: "`HOW MANY` clients search at a time", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "seconds", Value: 3, Usage: "`SECONDS` of each kind of search", Validator: terminal.AtLeastOne},
		},
	}, func(ctx context.Context, c *cli.Command, dir string, out measure.Output) error {
		o := locations.Options{
			Node: c.String("log") == api.Node, Postgres: c.String("postgres"), Meilisearch: c.String("meilisearch"),
			Sites: c.Int("sites"), Rounds: c.Int("turns"), Connections: c.Int("connections"), SearchDuration: time.Duration(c.Int("seconds")) * time.Second,
		}
		// No two groups may have the same number of accounts, because it is part of their names.
		for _, text := range c.StringSlice("crowd") {
			group, _ := parseGroup(text) // the flag's validator has read it
			o.Groups = append(o.Groups, group)
		}
		return locations.Run(ctx, dir, o, out)
	})
}

// parseGroup parses ACCOUNTSxSITES, both at least 1.
func parseGroup(text string) (g locations.AccountGroup, err error) {
	accounts, sites, _ := strings.Cut(text, "x")
	g.Accounts, err = strconv.Atoi(accounts)
	if err == nil {
		g.Sites, err = strconv.Atoi(sites)
	}
	if err != nil || g.Accounts < 1 || g.Sites < 1 {
		return g, fmt.Errorf("%q is not of the form 100x10000", text)
	}
	return g, nil
}
