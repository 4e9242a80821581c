package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/bench/journal"
	"lieudit/cmd/terminal"
)

func (p program) benchJournalCommand() *cli.Command {
	return &cli.Command{
		Name:  "log",
		Usage: "Measure the journal: durable appends, catch-up read, opening",
		Description: `Journal and raw limit take turns on the same disk; a figure is the median of its turns. It takes about a
minute and leaves nothing behind.

  go run ./cmd/bench log
  go run ./cmd/bench log --dir /var/lib --json`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "dir", Value: ".", Usage: "`FOLDER` on the disk to measure", TakesFile: true},
			&cli.IntFlag{Name: "events", Value: 1_000_000, Usage: "`HOW MANY` events the log holds that is read and opened", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "turns", Value: 5, Usage: "`TURNS` of half a second for each figure", Validator: terminal.AtLeastOne},
			&cli.BoolFlag{Name: "json", Usage: "print one line of JSON a figure"},
		},
		Action: p.benchJournal,
	}
}

func (p program) benchJournal(ctx context.Context, c *cli.Command) (err error) {
	dir, err := os.MkdirTemp(c.String("dir"), "lieudit-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	rows, err := journal.Measure(ctx, dir, journal.Options{Rounds: c.Int("turns"), Events: c.Int("events")})
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return p.printFigures(rows)
	}
	t := terminal.Table{{"FIGURE", "VALUE", "RAW LIMIT", "UNIT", "RATIO"}}
	for _, r := range rows {
		t = append(t, []string{r.Name, fmt.Sprintf("%.0f", r.Value), formatNonzero("%.0f", r.Raw), r.Unit, formatNonzero("%.2f", r.Ratio)})
	}
	return p.PrintTable(t)
}

func (p program) printFigures(rows []journal.Figure) error {
	lines := json.NewEncoder(p.Out)
	for _, r := range rows {
		if err := lines.Encode(figure(r)); err != nil {
			return err
		}
	}
	return nil
}

// figure is a row of a measurement as it is piped on.
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Raw   float64 `json:"raw,omitempty"`
	Ratio float64 `json:"ratio,omitempty"`
}

func formatNonzero(form string, v float64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf(form, v)
}
