package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/bench/api"
	"lieudit/cmd/bench/locations"
	"lieudit/cmd/terminal"
)

const locationsHelp = `A service of its own is filled with invented shops and asked over HTTP: whole sets are synchronised (first, the same again,
one in a hundred changed), a write is looked for until it is found, and accounts are searched. It leaves nothing behind, but
for what it wrote to servers that are named.

  go run ./cmd/bench locations
  go run ./cmd/bench locations --log node --postgres postgres://… --crowd 100x10000 --json`

func (p program) benchLocationsCommand() *cli.Command {
	return &cli.Command{
		Name:        "locations",
		Usage:       "Measure customers' places over HTTP: sync, freshness, search",
		Description: locationsHelp,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "log", Value: api.Journal, Usage: "`LOG` of the service: journal, node", Validator: terminal.OneOf(api.Journal, api.Node)},
			&cli.StringFlag{Name: "postgres", Usage: "read models in the database at `URL`, which must be empty"},
			&cli.StringFlag{Name: "meilisearch", Usage: "search by the Meilisearch at `URL`"},
			&cli.IntFlag{Name: "sites", Value: 10_000, Usage: "`HOW MANY` sites a sync has, at most 11000", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "turns", Value: 3, Usage: "`TURNS` of each kind of sync", Validator: terminal.AtLeastOne},
			&cli.StringSliceFlag{Name: "crowd", Value: []string{"1x11000", "100x10000", "10000x100"}, Usage: "`ACCOUNTSxSITES` that are searched", Validator: validateCrowds},
			&cli.IntFlag{Name: "connections", Value: 2, Usage: "`HOW MANY` clients search at a time", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "seconds", Value: 3, Usage: "`SECONDS` of each kind of search", Validator: terminal.AtLeastOne},
			&cli.StringFlag{Name: "dir", Value: ".", Usage: "`FOLDER` on the disk to use", TakesFile: true},
			&cli.BoolFlag{Name: "json", Usage: "print one line of JSON a figure"},
		},
		Action: p.benchLocations,
	}
}

func (p program) benchLocations(ctx context.Context, c *cli.Command) error {
	bar := p.NewProgressBar()
	o := locations.Options{
		Dir: c.String("dir"), Node: c.String("log") == api.Node, Postgres: c.String("postgres"), Meilisearch: c.String("meilisearch"),
		Sites: c.Int("sites"), Rounds: c.Int("turns"), Connections: c.Int("connections"), SearchDuration: time.Duration(c.Int("seconds")) * time.Second,
		Progress: func(what string) { bar.Update(what, 0, 0) },
	}
	for _, text := range c.StringSlice("crowd") {
		crowd, err := parseCrowd(text)
		if err != nil {
			return err
		}
		o.Groups = append(o.Groups, crowd)
	}
	t := terminal.Table{{"WHAT", "ACCOUNTS", "SITES EACH", "TIMES", "PER SECOND", "P50 ms", "P99 ms"}}
	err := locations.Run(ctx, o, func(f locations.Figure) error {
		if c.Bool("json") {
			return json.NewEncoder(p.Out).Encode(f)
		}
		t = append(t, []string{f.Operation, terminal.GroupThousands(f.Accounts), terminal.GroupThousands(f.Sites), terminal.GroupThousands(f.Samples), formatNonzero("%.0f", f.PerSecond),
			fmt.Sprintf("%.3f", f.P50), fmt.Sprintf("%.3f", f.P99)})
		return nil
	})
	bar.Clear()
	if err != nil || c.Bool("json") {
		return err
	}
	return p.PrintTable(t)
}

func validateCrowds(all []string) error {
	for _, text := range all {
		if _, err := parseCrowd(text); err != nil {
			return err
		}
	}
	return nil
}

// parseCrowd reads ACCOUNTSxSITES.
func parseCrowd(text string) (locations.AccountGroup, error) {
	accounts, sites, _ := strings.Cut(text, "x")
	a, err := strconv.Atoi(accounts)
	if err == nil {
		var s int
		if s, err = strconv.Atoi(sites); err == nil && a > 0 && s > 0 {
			return locations.AccountGroup{Accounts: a, Sites: s}, nil
		}
	}
	return locations.AccountGroup{}, fmt.Errorf("%q is not of the form 100x10000", text)
}
