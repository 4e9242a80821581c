package console

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

	"lieudit/cmd/lieudit/service"
	"lieudit/cmd/lieudit/yardstick"
)

func (p Program) benchAddress() *cli.Command {
	return &cli.Command{
		Name:  "address",
		Usage: "Measure the address engine and its API on invented vintages of several sizes, or on real files",
		Description: `Each size is invented and built, then every operation is asked about random rows of it: in the engine on one
processor, and over HTTP on all of them, the clients on the same machine. With real files it is also counted how often
an address is found that was damaged in so many ways; with Meilisearch the same is asked of it. It leaves nothing behind.

  lieudit bench address
  lieudit bench address --sizes 10k,100k,1M,10M,26M --dir /var/tmp --json
  lieudit bench address --file adresses-48.csv.gz --meilisearch http://KEY@127.0.0.1:7700`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "dir", Value: ".", Usage: "`FOLDER` with space for the vintages: 60 bytes a row, three times that while they are built", TakesFile: true},
			&cli.StringFlag{Name: "sizes", Value: "10k,100k,1M", Usage: "`ROWS` of each vintage, k and M for thousands and millions", Validator: func(text string) error {
				_, err := sizes(text)
				return err
			}},
			&cli.StringSliceFlag{Name: "file", Usage: "`FILE` of the base to measure instead, as often as there are files", TakesFile: true},
			&cli.IntFlag{Name: "questions", Value: 400, Usage: "`HOW MANY` damaged addresses of each kind, with --file", Validator: atLeastOne},
			p.text("meilisearch", "", "Meilisearch to measure beside, as `http://KEY@HOST:PORT`"),
			&cli.DurationFlag{Name: "turn", Value: 2 * time.Second, Usage: "`TIME` for each figure"},
			&cli.IntFlag{Name: "connections", Value: 16, Usage: "`HOW MANY` clients over HTTP", Validator: atLeastOne},
			&cli.BoolFlag{Name: "json", Usage: "print one line of JSON a figure"},
		},
		Action: p.measureAddress,
	}
}

// sizes reads 10k,1M.
func sizes(text string) (all []int, err error) {
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

func (p Program) measureAddress(ctx context.Context, c *cli.Command) (err error) {
	dir, err := os.MkdirTemp(c.String("dir"), "lieudit-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	o := yardstick.Options{Dir: dir, Turn: c.Duration("turn"), Connections: c.Int("connections"),
		Files: c.StringSlice("file"), Questions: c.Int("questions"), Meilisearch: p.meilisearch(c)}
	if err := onMeilisearch(c, service.Config{Meilisearch: o.Meilisearch}); err != nil {
		return err
	}
	if o.Sizes, err = sizes(c.String("sizes")); err != nil {
		return wrong(c, "--sizes: %v", err)
	}
	bar := p.bar()
	o.Progress = func(what string, done, total int) { bar.show(what, int64(done), int64(total)) }
	t := table{{"ROWS", "WHERE", "OPERATION", "PER SECOND", "P50 ms", "P99 ms", "MAX ms", "INDEX"}}
	scores := scoreTable()
	speed := func(f yardstick.Figure) error {
		if c.Bool("json") {
			return json.NewEncoder(p.Out).Encode(f)
		}
		t = append(t, []string{grouped(f.Rows), f.Where, f.Operation, grouped(int(f.PerSecond)), limit("%.3f", f.P50), limit("%.3f", f.P99),
			limit("%.3f", f.Max), unless(f.Bytes == 0, size(f.Bytes))})
		return nil
	}
	accuracy := func(s yardstick.Score) error {
		if c.Bool("json") {
			return json.NewEncoder(p.Out).Encode(s)
		}
		scores = append(scores, scoreLine(s))
		return nil
	}
	err = yardstick.Run(ctx, o, yardstick.Listener{Speed: speed, Accuracy: accuracy})
	bar.clear()
	if err != nil || c.Bool("json") {
		return err
	}
	if err := p.table(t); err != nil || len(scores) == 1 {
		return err
	}
	fmt.Fprintln(p.Out)
	return p.table(scores)
}

func scoreTable() table {
	return table{{"DAMAGE", "ASKED", "INDEX", "TOP-1", "TOP-5", "EXACT", "FALSE EXACT", "MEAN µs", "P50 µs", "P99 µs", "SEARCHES"}}
}

func scoreLine(s yardstick.Score) []string {
	percent := func(n int) string { return fmt.Sprintf("%.2f %%", 100*float64(n)/float64(max(s.Asked, 1))) }
	micro := func(v float64) string { return grouped(int(v)) }
	return []string{s.Kind, grouped(s.Asked), s.Where, percent(s.First), percent(s.Among), percent(s.Exact), grouped(s.FalseExact),
		micro(s.Mean), micro(s.P50), micro(s.P99), limit("%.1f", s.Searches)}
}
