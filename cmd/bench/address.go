package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/bench/address"
	lieuditcli "lieudit/cmd/lieudit/cli"
	"lieudit/cmd/lieudit/service"
	"lieudit/cmd/terminal"
)

func (p program) benchAddressCommand() *cli.Command {
	return &cli.Command{
		Name:  "address",
		Usage: "Measure the address engine and its API on invented vintages of several sizes, or on real files",
		Description: `Each size is invented and built, then every operation is asked about random rows of it: in the engine on one
processor, and over HTTP on all of them, the clients on the same machine. With real files it is also counted how often
an address is found that was damaged in so many ways; with Meilisearch the same is asked of it. It leaves nothing behind.

  go run ./cmd/bench address
  go run ./cmd/bench address --sizes 10k,100k,1M,10M,26M --dir /var/tmp --json
  go run ./cmd/bench address --file adresses-48.csv.gz --meilisearch http://KEY@127.0.0.1:7700`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "dir", Value: ".", Usage: "`FOLDER` with space for the vintages: 60 bytes a row, three times that while they are built", TakesFile: true},
			&cli.StringFlag{Name: "sizes", Value: "10k,100k,1M", Usage: "`ROWS` of each vintage, k and M for thousands and millions", Validator: func(text string) error {
				_, err := parseSizes(text)
				return err
			}},
			&cli.StringSliceFlag{Name: "file", Usage: "`FILE` of the base to measure instead, as often as there are files", TakesFile: true},
			&cli.IntFlag{Name: "questions", Value: 400, Usage: "`HOW MANY` damaged addresses of each kind, with --file", Validator: terminal.AtLeastOne},
			p.StringFlag("meilisearch", "", "Meilisearch to measure beside, as `http://KEY@HOST:PORT`"),
			&cli.DurationFlag{Name: "turn", Value: 2 * time.Second, Usage: "`TIME` for each figure"},
			&cli.IntFlag{Name: "connections", Value: 16, Usage: "`HOW MANY` clients over HTTP", Validator: terminal.AtLeastOne},
			&cli.BoolFlag{Name: "json", Usage: "print one line of JSON a figure"},
		},
		Action: p.benchAddress,
	}
}

// parseSizes reads 10k,1M.
func parseSizes(text string) (all []int, err error) {
	for _, word := range strings.Split(text, ",") {
		word = strings.TrimSpace(word)
		times := 1
		switch {
		case strings.HasSuffix(word, "k"):
			times = 1_000
		case strings.HasSuffix(word, "M"):
			times = 1_000_000
		}
		n, err := strconv.Atoi(strings.TrimRight(word, "kM"))
		if err != nil || n < 1 || n*times > 100_000_000 {
			return nil, fmt.Errorf("%q is no size such as 10k or 1M", word)
		}
		all = append(all, n*times)
	}
	return all, nil
}

func (p program) benchAddress(ctx context.Context, c *cli.Command) (err error) {
	dir, err := os.MkdirTemp(c.String("dir"), "lieudit-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	o := address.Options{Dir: dir, FigureDuration: c.Duration("turn"), Connections: c.Int("connections"),
		Files: c.StringSlice("file"), Questions: c.Int("questions"), Meilisearch: lieuditcli.MeilisearchURL(c, p.LookupEnv)}
	if err := lieuditcli.ValidateMeilisearch(c, service.Config{Meilisearch: o.Meilisearch}); err != nil {
		return err
	}
	if o.Sizes, err = parseSizes(c.String("sizes")); err != nil {
		return terminal.NewUsageError(c, "--sizes: %v", err)
	}
	bar := p.NewProgressBar()
	o.Progress = func(what string, done, total int) { bar.Update(what, int64(done), int64(total)) }
	t := terminal.Table{{"ROWS", "WHERE", "OPERATION", "PER SECOND", "P50 ms", "P99 ms", "MAX ms", "INDEX"}}
	scores := newScoreTable()
	speed := func(f address.Figure) error {
		if c.Bool("json") {
			return json.NewEncoder(p.Out).Encode(f)
		}
		t = append(t, []string{terminal.GroupThousands(f.Rows), f.Target, f.Operation, terminal.GroupThousands(int(f.PerSecond)), formatNonzero("%.3f", f.P50), formatNonzero("%.3f", f.P99),
			formatNonzero("%.3f", f.Max), terminal.EmptyIf(f.Bytes == 0, terminal.FormatBytes(f.Bytes))})
		return nil
	}
	accuracy := func(s address.Score) error {
		if c.Bool("json") {
			return json.NewEncoder(p.Out).Encode(s)
		}
		scores = append(scores, scoreRow(s))
		return nil
	}
	err = address.Run(ctx, o, address.Reporter{OnFigure: speed, OnScore: accuracy})
	bar.Clear()
	if err != nil || c.Bool("json") {
		return err
	}
	if err := p.PrintTable(t); err != nil || len(scores) == 1 {
		return err
	}
	fmt.Fprintln(p.Out)
	return p.PrintTable(scores)
}

func newScoreTable() terminal.Table {
	return terminal.Table{{"DAMAGE", "ASKED", "INDEX", "TOP-1", "TOP-5", "EXACT", "FALSE EXACT", "MEAN µs", "P50 µs", "P99 µs", "SEARCHES"}}
}

func scoreRow(s address.Score) []string {
	percent := func(n int) string { return fmt.Sprintf("%.2f %%", 100*float64(n)/float64(max(s.Questions, 1))) }
	micro := func(v float64) string { return terminal.GroupThousands(int(v)) }
	return []string{s.Kind, terminal.GroupThousands(s.Questions), s.Target, percent(s.Top1), percent(s.Top5), percent(s.Exact), terminal.GroupThousands(s.FalseExact),
		micro(s.Mean), micro(s.P50), micro(s.P99), formatNonzero("%.1f", s.Searches)}
}
