package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/bench/api"
)

const apiHelp = `The service (keys checked, every request counted durably, read models filled) and an empty net/http handler are
processes of their own and take turns under the same clients; a figure is the median of its turns. It leaves nothing
behind.

  lieudit bench api
  lieudit bench api --connections 64 --log node --seconds 5 --json`

func (p Program) benchAPICommand() *cli.Command {
	return &cli.Command{
		Name:        "api",
		Usage:       "Measure the API over HTTP, metered and durable, beside an empty handler",
		Description: apiHelp,
		Flags: []cli.Flag{
			&cli.IntSliceFlag{Name: "connections", Value: []int{1, 16, 64, 256}, Usage: "`HOW MANY` clients", Validator: validateEachAtLeastOne},
			&cli.IntSliceFlag{Name: "accounts", Value: []int{1, 1000}, Usage: "over `HOW MANY` accounts the requests are spread", Validator: validateEachAtLeastOne},
			&cli.StringSliceFlag{Name: "log", Value: []string{api.Journal, api.Node}, Usage: "`LOG` of the service: journal, node", Validator: eachOneOf(api.Journal, api.Node)},
			&cli.StringSliceFlag{Name: "path", Value: []string{"/me", "/address/autocomplete?q=rue+de+la+mairie"}, Usage: "`PATH` that is asked for"},
			&cli.IntFlag{Name: "seconds", Value: 2, Usage: "`SECONDS` of a turn", Validator: validateAtLeastOne},
			&cli.IntFlag{Name: "turns", Value: 3, Usage: "`TURNS` for each figure", Validator: validateAtLeastOne},
			&cli.StringFlag{Name: "dir", Value: ".", Usage: "`FOLDER` on the disk to use", TakesFile: true},
			&cli.BoolFlag{Name: "json", Usage: "print one line of JSON a figure"},
		},
		Action: p.benchAPI,
	}
}

func validateEachAtLeastOne(all []int) error {
	for _, n := range all {
		if err := validateAtLeastOne(n); err != nil {
			return err
		}
	}
	return nil
}

func eachOneOf(values ...string) func([]string) error {
	return func(all []string) error {
		for _, v := range all {
			if err := oneOf(values...)(v); err != nil {
				return err
			}
		}
		return nil
	}
}

func (p Program) benchAPI(ctx context.Context, c *cli.Command) error {
	bar := p.newProgressBar()
	o := api.Options{
		Dir: c.String("dir"), Logs: c.StringSlice("log"), Paths: c.StringSlice("path"), Accounts: c.IntSlice("accounts"),
		Connections: c.IntSlice("connections"), RoundDuration: time.Duration(c.Int("seconds")) * time.Second, Rounds: c.Int("turns"),
		Progress: func(what string) { bar.update(what, 0, 0) },
	}
	t := table{{"LOG", "PATH", "ACCOUNTS", "CONNECTIONS", "PER SECOND", "EMPTY", "RATIO", "P50 ms", "P99 ms", "EMPTY P99", "EVENTS PER MILLION"}}
	err := api.Run(ctx, o, func(f api.Figure) error {
		if c.Bool("json") {
			return json.NewEncoder(p.Out).Encode(f)
		}
		path, _, _ := strings.Cut(f.Path, "?")
		t = append(t, []string{
			f.Log, path, groupThousands(f.Accounts), strconv.Itoa(f.Connections), groupThousands(int(f.PerSecond)), groupThousands(int(f.EmptyPerSecond)),
			fmt.Sprintf("%.2f", f.Ratio), fmt.Sprintf("%.3f", f.P50), fmt.Sprintf("%.3f", f.P99), fmt.Sprintf("%.3f", f.EmptyP99),
			groupThousands(int(f.EventsPerMillion)),
		})
		return nil
	})
	bar.clear()
	if err != nil || c.Bool("json") {
		return err
	}
	return p.printTable(t)
}

// emptyServerCommand serves a handler that does nothing, for the service to be measured against.
func (p Program) emptyServerCommand() *cli.Command {
	return &cli.Command{
		Name: api.EmptyHandlerCommand[1], Usage: "Serve an empty handler", Hidden: true,
		Action: func(ctx context.Context, _ *cli.Command) error {
			var lc net.ListenConfig
			ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			defer context.AfterFunc(ctx, func() { ln.Close() })()
			if err := p.printLine("An empty handler is served at %s", ln.Addr()); err != nil {
				return err
			}
			s := http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), ReadHeaderTimeout: 10 * time.Second}
			if err := s.Serve(ln); ctx.Err() == nil {
				return err
			}
			return nil
		},
	}
}
