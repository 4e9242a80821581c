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
	"lieudit/cmd/terminal"
)

const apiHelp = `The service (keys checked, every request counted durably, read models filled) and an empty net/http handler are
processes of their own and take turns under the same clients; a figure is the median of its turns. It leaves nothing
behind.

  go run ./cmd/bench api
  go run ./cmd/bench api --connections 64 --log node --seconds 5 --json`

func (p program) benchAPICommand() *cli.Command {
	return &cli.Command{
		Name:        "api",
		Usage:       "Measure the API over HTTP, metered and durable, beside an empty handler",
		Description: apiHelp,
		Flags: []cli.Flag{
			&cli.IntSliceFlag{Name: "connections", Value: []int{1, 16, 64, 256}, Usage: "`HOW MANY` clients", Validator: terminal.Each(terminal.AtLeastOne)},
			&cli.IntSliceFlag{Name: "accounts", Value: []int{1, 1000}, Usage: "over `HOW MANY` accounts the requests are spread", Validator: terminal.Each(terminal.AtLeastOne)},
			&cli.StringSliceFlag{Name: "log", Value: []string{api.Journal, api.Node}, Usage: "`LOG` of the service: journal, node", Validator: terminal.Each(terminal.OneOf(api.Journal, api.Node))},
			&cli.StringSliceFlag{Name: "path", Value: []string{"/me", "/address/autocomplete?q=rue+de+la+mairie"}, Usage: "`PATH` that is asked for"},
			&cli.IntFlag{Name: "seconds", Value: 2, Usage: "`SECONDS` of a turn", Validator: terminal.AtLeastOne},
			&cli.IntFlag{Name: "turns", Value: 3, Usage: "`TURNS` for each figure", Validator: terminal.AtLeastOne},
			&cli.StringFlag{Name: "dir", Value: ".", Usage: "`FOLDER` on the disk to use", TakesFile: true},
			&cli.BoolFlag{Name: "json", Usage: "print one line of JSON a figure"},
		},
		Action: p.benchAPI,
	}
}

func (p program) benchAPI(ctx context.Context, c *cli.Command) error {
	bar := p.NewProgressBar()
	o := api.Options{
		Dir: c.String("dir"), Logs: c.StringSlice("log"), Paths: c.StringSlice("path"), Accounts: c.IntSlice("accounts"),
		Connections: c.IntSlice("connections"), RoundDuration: time.Duration(c.Int("seconds")) * time.Second, Rounds: c.Int("turns"),
		Progress: func(what string) { bar.Update(what, 0, 0) },
	}
	t := terminal.Table{{"LOG", "PATH", "ACCOUNTS", "CONNECTIONS", "PER SECOND", "EMPTY", "RATIO", "P50 ms", "P99 ms", "EMPTY P99", "EVENTS PER MILLION"}}
	err := api.Run(ctx, o, func(f api.Figure) error {
		if c.Bool("json") {
			return json.NewEncoder(p.Out).Encode(f)
		}
		path, _, _ := strings.Cut(f.Path, "?")
		t = append(t, []string{
			f.Log, path, terminal.GroupThousands(f.Accounts), strconv.Itoa(f.Connections), terminal.GroupThousands(int(f.PerSecond)), terminal.GroupThousands(int(f.EmptyPerSecond)),
			fmt.Sprintf("%.2f", f.Ratio), fmt.Sprintf("%.3f", f.P50), fmt.Sprintf("%.3f", f.P99), fmt.Sprintf("%.3f", f.EmptyP99),
			terminal.GroupThousands(int(f.EventsPerMillion)),
		})
		return nil
	})
	bar.Clear()
	if err != nil || c.Bool("json") {
		return err
	}
	return p.PrintTable(t)
}
