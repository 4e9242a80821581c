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

	"lieudit/cmd/lieudit/yardstick"
)

func (p Program) benchAddress() *cli.Command {
	return &cli.Command{
		Name:  "address",
		Usage: "Measure the address engine and its API on invented vintages of several sizes",
		Description: `Each size is invented and built, then every operation is asked about random rows of it: in the engine on one
processor, and over HTTP on all of them, the clients on the same machine. It leaves nothing behind.

  lieudit bench address
  lieudit bench address --sizes 10k,100k,1M,10M,26M --dir /var/tmp --json`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "dir", Value: ".", Usage: "`FOLDER` with space for the vintages: 60 bytes a row, three times that while they are built", TakesFile: true},
			&cli.StringFlag{Name: "sizes", Value: "10k,100k,1M", Usage: "`ROWS` of each vintage, k and M for thousands and millions", Validator: func(text string) error {
				_, err := sizes(text)
				return err
			}},
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
	o := yardstick.Options{Dir: dir, Turn: c.Duration("turn"), Connections: c.Int("connections")}
	if o.Sizes, err = sizes(c.String("sizes")); err != nil {
		return wrong(c, "--sizes: %v", err)
	}
	bar := p.bar()
	o.Progress = func(what string, done, total int) { bar.show(what, int64(done), int64(total)) }
	t := table{{"ROWS", "WHERE", "OPERATION", "PER SECOND", "P50 ms", "P99 ms", "MAX ms", "INDEX"}}
	err = yardstick.Run(ctx, o, func(f yardstick.Figure) error {
		if c.Bool("json") {
			return json.NewEncoder(p.Out).Encode(f)
		}
		t = append(t, []string{grouped(f.Rows), f.Where, f.Operation, grouped(int(f.PerSecond)), limit("%.3f", f.P50), limit("%.3f", f.P99),
			limit("%.3f", f.Max), unless(f.Bytes == 0, size(f.Bytes))})
		return nil
	})
	bar.clear()
	if err != nil || c.Bool("json") {
		return err
	}
	return p.table(t)
}
