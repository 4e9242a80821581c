package console

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/census"
	"lieudit/cmd/lieudit/contest"
)

const locationsHelp = `A service of its own is filled with invented shops and asked over HTTP: whole sets are synchronised (first, the same again,
one in a hundred changed), a write is looked for until it is found, and accounts are searched. It leaves nothing behind, but
for what it wrote to servers that are named.

  lieudit bench locations
  lieudit bench locations --log node --postgres postgres://… --crowd 100x10000 --json`

func (p Program) benchLocations() *cli.Command {
	return &cli.Command{
		Name:        "locations",
		Usage:       "Measure customers' places over HTTP: sync, freshness, search",
		Description: locationsHelp,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "log", Value: contest.Journal, Usage: "`LOG` of the service: journal, node", Validator: oneOf(contest.Journal, contest.Node)},
			&cli.StringFlag{Name: "postgres", Usage: "read models in the database at `URL`, which must be empty"},
			&cli.StringFlag{Name: "meilisearch", Usage: "search by the Meilisearch at `URL`"},
			&cli.IntFlag{Name: "sites", Value: 10_000, Usage: "`HOW MANY` sites a sync has, at most 11000", Validator: atLeastOne},
			&cli.IntFlag{Name: "turns", Value: 3, Usage: "`TURNS` of each kind of sync", Validator: atLeastOne},
			&cli.StringSliceFlag{Name: "crowd", Value: []string{"1x11000", "100x10000", "10000x100"}, Usage: "`ACCOUNTSxSITES` that are searched", Validator: allCrowds},
			&cli.IntFlag{Name: "connections", Value: 2, Usage: "`HOW MANY` clients search at a time", Validator: atLeastOne},
			&cli.IntFlag{Name: "seconds", Value: 3, Usage: "`SECONDS` of each kind of search", Validator: atLeastOne},
			&cli.StringFlag{Name: "dir", Value: ".", Usage: "`FOLDER` on the disk to use", TakesFile: true},
			&cli.BoolFlag{Name: "json", Usage: "print one line of JSON a figure"},
		},
		Action: p.measureLocations,
	}
}

func (p Program) measureLocations(ctx context.Context, c *cli.Command) error {
	bar := p.bar()
	o := census.Options{
		Dir: c.String("dir"), Node: c.String("log") == contest.Node, Postgres: c.String("postgres"), Meilisearch: c.String("meilisearch"),
		Sites: c.Int("sites"), Turns: c.Int("turns"), Connections: c.Int("connections"), Turn: time.Duration(c.Int("seconds")) * time.Second,
		Progress: func(what string) { bar.show(what, 0, 0) },
	}
	for _, text := range c.StringSlice("crowd") {
		crowd, err := crowdOf(text)
		if err != nil {
			return err
		}
		o.Crowds = append(o.Crowds, crowd)
	}
	t := table{{"WHAT", "ACCOUNTS", "SITES EACH", "TIMES", "PER SECOND", "P50 ms", "P99 ms"}}
	err := census.Run(ctx, o, func(f census.Figure) error {
		if c.Bool("json") {
			return json.NewEncoder(p.Out).Encode(f)
		}
		t = append(t, []string{f.What, grouped(f.Accounts), grouped(f.Sites), grouped(f.Times), limit("%.0f", f.PerSecond),
			fmt.Sprintf("%.3f", f.P50), fmt.Sprintf("%.3f", f.P99)})
		return nil
	})
	bar.clear()
	if err != nil || c.Bool("json") {
		return err
	}
	return p.table(t)
}

func allCrowds(all []string) error {
	for _, text := range all {
		if _, err := crowdOf(text); err != nil {
			return err
		}
	}
	return nil
}

// crowdOf reads ACCOUNTSxSITES.
func crowdOf(text string) (census.Crowd, error) {
	accounts, sites, _ := strings.Cut(text, "x")
	a, err := strconv.Atoi(accounts)
	if err == nil {
		var s int
		if s, err = strconv.Atoi(sites); err == nil && a > 0 && s > 0 {
			return census.Crowd{Accounts: a, Sites: s}, nil
		}
	}
	return census.Crowd{}, fmt.Errorf("%q is not of the form 100x10000", text)
}
