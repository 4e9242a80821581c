package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/ops"
	"lieudit/cmd/terminal"
)

// healthCommand is lieudit health: what /readyz of a running instance says, as a table and as an exit code. Health checks of
// containers run it, because an image that holds the program alone has no other client.
func (p Program) healthCommand() *cli.Command {
	return &cli.Command{
		Name:  "health",
		Usage: "See whether a running instance is ready, and what each of its parts says",
		Description: `Exit codes: 0 ready, 1 not ready or no answer. lieudit guide readiness explains each reason.

  lieudit health
  lieudit health --ops http://10.0.0.7:8082`,
		Flags: []cli.Flag{
			p.StringFlag("ops", "http://127.0.0.1:8082", "`URL` of health and metrics, as serve prints it"),
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
		},
		Action: func(ctx context.Context, c *cli.Command) error {
			address, err := url.Parse(c.String("ops"))
			if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
				return terminal.NewUsageError(c, "--ops (LIEUDIT_OPS) is not of the form http://HOST:PORT")
			}
			isReady, report, err := readReadiness(ctx, address.JoinPath("readyz"))
			if err != nil {
				return err
			}
			if err := p.printReadiness(c.Bool("json"), report); err != nil {
				return err
			}
			if !isReady {
				return errNotReady
			}
			return nil
		},
	}
}

// errNotReady is the result of lieudit health for an instance that answers 503.
var errNotReady = errors.New("not ready")

const (
	// healthTimeout is longer than the two seconds that an instance takes at most to answer.
	healthTimeout = 5 * time.Second
	// maxReportBytes bounds an answer: whatever listens at the address may send anything.
	maxReportBytes = 1 << 20
)

// readReadiness asks an instance how its parts are.
func readReadiness(ctx context.Context, address *url.URL) (isReady bool, report ops.Report, err error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return false, report, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, report, fmt.Errorf("no instance answers: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusServiceUnavailable {
		return false, report, fmt.Errorf("the answer is %s: is --ops the address of health and metrics?", response.Status)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxReportBytes)).Decode(&report); err != nil {
		return false, report, fmt.Errorf("the answer is not that of an instance: is --ops the address of health and metrics? %w", err)
	}
	return response.StatusCode == http.StatusOK, report, nil
}

// printReadiness prints each part with what it says, in the order of their names.
func (p Program) printReadiness(asJSON bool, report ops.Report) error {
	if asJSON {
		return p.PrintJSON(report)
	}
	rows := terminal.Table{{"PART", "STATE"}}
	for _, name := range slices.Sorted(maps.Keys(report.Components)) {
		rows = append(rows, []string{name, onOneLine(report.Components[name])})
	}
	return p.PrintTable(rows)
}

// onOneLine joins the lines of a text with semicolons, and its words with single spaces: the errors of databases come in several
// indented lines.
func onOneLine(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 {
			lines = append(lines, strings.Join(words, " "))
		}
	}
	return strings.Join(lines, "; ")
}
