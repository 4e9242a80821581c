package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/adminclient"
	"lieudit/cmd/terminal"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
)

// usageCommand groups the commands on counted requests: /usage and /accounts/{id}/usage of the customer area. Requests are
// counted by period: a month that begins on the account's own day. They count for a contract, which is the account's own
// or that of its agency.
func (p Program) usageCommand() *cli.Command {
	return terminal.NewGroup("usage", "What was counted: for an account, for invoices; and whether the log says the same",
		p.usageShowCommand(), p.usageLinesCommand(), p.usageExportCommand(), p.usageReconcileCommand(), p.usageAdjustCommand())
}

// usageShowCommand is lieudit usage show: GET /accounts/{id}/usage. --by names the columns by which the requests are grouped.
func (p Program) usageShowCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "Show what counts for an account in a period",
		ArgsUsage: "ACCOUNT",
		Description: `  lieudit usage show mende
  lieudit usage show mende --period 2026-11 --by key,day`,
		Flags: p.areaFlags(
			&cli.StringFlag{Name: "period", Usage: "its first `DAY`, or the month it begins in as in 2026-11; the running period when left out", Validator: validatePeriod},
			&cli.StringFlag{Name: "by", Value: "endpoint", Usage: "what to keep apart: `WORDS` out of key, endpoint and day with commas between"},
		),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			raw, err := s.client.Get(ctx, adminclient.JoinPath("", "accounts", s.Args().First(), "usage"), s.flagQuery("period", "by"))
			if err != nil {
				return err
			}
			return printResource(s, raw, s.printUsage)
		}),
	}
}

// usageLinesCommand is lieudit usage lines: GET /accounts/{id}/usage/lines, page after page.
func (p Program) usageLinesCommand() *cli.Command {
	return &cli.Command{
		Name:      "lines",
		Usage:     "List what the figures of a period are made of, as the log holds it",
		ArgsUsage: "ACCOUNT",
		Description: `Each line is what was counted at an instant, taken back, or corrected. Their sum is what usage show says.

  lieudit usage lines mende --day 2026-11-21 --key KEY`,
		Flags: p.areaFlags(
			&cli.StringFlag{Name: "period", Usage: "its first `DAY`, or the month it begins in as in 2026-11; the running period when left out", Validator: validatePeriod},
			&cli.StringFlag{Name: "day", Usage: "only what is counted for a `DAY`"},
			&cli.StringFlag{Name: "key", Usage: "only a key's, by its `ID`"},
			&cli.StringFlag{Name: "endpoint", Usage: "only an `ENDPOINT`'s, such as GET /me"},
		),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			query := s.flagQuery("period", "endpoint") // the names of the other flags are not those of the parameters
			for flag, name := range map[string]string{"day": "jour", "key": "cle"} {
				if value := s.String(flag); value != "" {
					query.Set(name, value)
				}
			}
			return printList(ctx, s, adminclient.JoinPath("", "accounts", s.Args().First(), "usage", "lines"), query,
				[]string{"WRITTEN", "WHAT", "DAY", "KEY", "ENDPOINT", "REQUESTS", "REASON"}, s.countRow)
		}),
	}
}

// countRow is what was counted at an instant as a row of a table.
func (s session) countRow(c body.UsageCount) []string {
	kinds := map[body.CountKind]string{body.CountTicked: "counted", body.CountRefunded: "taken back", body.CountAdjusted: "corrected"}
	return []string{s.formatTime(c.Recorded), kinds[c.Kind], formatDay(c.Day), c.Key, c.Endpoint, fmt.Sprint(c.Requests), c.Reason}
}

// flagQuery is a query with the values of text flags under the flags' own names. Empty ones are left out.
func (s session) flagQuery(flags ...string) url.Values {
	query := url.Values{}
	for _, name := range flags {
		if value := s.String(name); value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// printUsage prints the totals of a period and then a table of its lines. Figures of a period that is not closed are marked.
func (s session) printUsage(u body.Usage) error {
	err := s.PrintFields(
		"period", s.formatTime(u.Start)+" to "+s.formatTime(u.End),
		"counts for", u.Agency,
		"limit", fmt.Sprint(u.Limit),
		"counted", fmt.Sprint(u.Total),
		"left", fmt.Sprint(u.Remaining),
		"state", s.describePeriodState(u),
	)
	if err != nil || len(u.Lines) == 0 {
		return err
	}
	if err := s.PrintLine(""); err != nil {
		return err
	}
	return s.PrintTable(usageTable(u.Lines))
}

// describePeriodState reports whether more may be counted in a period.
func (s session) describePeriodState(u body.Usage) string {
	switch {
	case !u.Closed.IsZero():
		return "closed " + s.formatTime(u.Closed) + ": corrections alone change it"
	case u.State == body.PeriodClosed:
		return "over: nothing was counted"
	case u.State == body.PeriodEnded:
		return "ended, not closed yet: what is late is still counted"
	}
	return "running: more is counted until " + s.formatTime(u.End)
}

// usageTable is the table of the lines of a period, without the columns that are empty in all of them.
func usageTable(lines []body.UsageLine) terminal.Table {
	columns := []struct {
		header string
		value  func(body.UsageLine) string
	}{
		{"DAY", func(l body.UsageLine) string { return formatDay(l.Day) }},
		{"KEY", func(l body.UsageLine) string { return l.Key }},
		{"ENDPOINT", func(l body.UsageLine) string { return l.Endpoint }},
		{"REQUESTS", func(l body.UsageLine) string { return fmt.Sprint(l.Requests) }},
	}
	t := make(terminal.Table, 1+len(lines))
	for _, c := range columns {
		if !slices.ContainsFunc(lines, func(l body.UsageLine) bool { return c.value(l) != "" }) {
			continue
		}
		t[0] = append(t[0], c.header)
		for i, l := range lines {
			t[1+i] = append(t[1+i], c.value(l))
		}
	}
	return t
}

// usageExportCommand is lieudit usage export: GET /usage, copied to standard output while it arrives. --json is short for
// --format ndjson. The export of many accounts may take long, so the request has no time limit.
func (p Program) usageExportCommand() *cli.Command {
	return &cli.Command{
		Name:  "export",
		Usage: "Write what counts for all accounts, line by line, for invoices",
		Description: `Lines are kept apart by account, period, day, key and endpoint, and come as they are read. The last column
says of the period whether it is running (en_cours), has ended but is not closed (a_clore), or is closed (close): bill none
before it is.

  lieudit usage export --period 2026-11 > november.csv
  lieudit usage export --period 2026-11 --excel > novembre.csv
  lieudit usage export --json`,
		Flags: p.areaFlags(
			periodsFlag(),
			&cli.StringFlag{Name: "format", Value: "csv", Usage: "`FORMAT`: csv, json or ndjson; --json is ndjson", Validator: terminal.OneOf("csv", "json", "ndjson")},
			&cli.BoolFlag{Name: "excel", Usage: "CSV as a French Excel opens it"},
		),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			query := s.flagQuery("period") // the names of the other flags are not those of the parameters
			query.Set("format", strings.ToLower(s.String("format")))
			if s.Bool("json") {
				query.Set("format", "ndjson")
			}
			if s.Bool("excel") {
				query.Set("tableur", "excel")
			}
			lines := lineCounter{Writer: s.Out}
			err := s.client.WithoutTimeout().Download(ctx, "/usage", query, &lines)
			if err == nil && lines.isEmpty(query.Get("format")) {
				s.warnEmptyExport()
			}
			return err
		}),
	}
}

// lineCounter counts the lines that are written, and keeps the first bytes of them.
type lineCounter struct {
	io.Writer
	lines int
	head  []byte
}

func (c *lineCounter) Write(b []byte) (int, error) {
	c.lines += bytes.Count(b, []byte("\n"))
	if free := 64 - len(c.head); free > 0 {
		c.head = append(c.head, b[:min(free, len(b))]...)
	}
	return c.Writer.Write(b)
}

// isEmpty reports whether an export has no line of usage.
func (c *lineCounter) isEmpty(format string) bool {
	switch format {
	case "csv":
		return c.lines <= 1 // the names of the columns
	case "json":
		return bytes.Contains(c.head, []byte(`"results":[]`))
	}
	return len(bytes.TrimSpace(c.head)) == 0
}

// warnEmptyExport says that nothing was exported: a file with names of columns alone is easily taken for an invoice of nothing.
func (s session) warnEmptyExport() {
	if period := s.String("period"); period != "" {
		fmt.Fprintf(s.Err, "warning: no request is counted in periods that began in %s\n", period)
		return
	}
	fmt.Fprintln(s.Err, "warning: no request is counted in any period")
}

// periodsFlag selects the periods of a command that works on all accounts, whose periods begin on different days.
func periodsFlag() cli.Flag {
	return &cli.StringFlag{Name: "period", Usage: "periods whose first `DAY`, or month as in 2026-11, is this; all when left out", Validator: validatePeriod}
}

// validatePeriod refuses a text that is neither a day nor a month.
func validatePeriod(text string) error {
	if _, err := time.Parse("2006-01", text); text == "" || err == nil {
		return nil
	}
	if _, err := plan.ParseDate(text); err != nil {
		return errors.New("it is a day as in 2026-11-21, or a month as in 2026-11")
	}
	return nil
}

// usageReconcileCommand is lieudit usage reconcile: POST /usage:reconcile. The service counts anew from the log and compares
// with what it shows and bills. It reads the whole log, so the request has no time limit.
func (p Program) usageReconcileCommand() *cli.Command {
	return &cli.Command{
		Name:  "reconcile",
		Usage: "Count anew from the log and compare with what is shown and billed; exit 1 on any difference",
		Description: `It also lists what instances counted last that did not end in good order: they may have been billed and not
answered.

  lieudit usage reconcile
  lieudit usage reconcile --period 2026-11`,
		Flags: p.areaFlags(periodsFlag()),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			raw, err := s.client.WithoutTimeout().Post(ctx, "/usage:reconcile", body.ReconcileUsage{Period: s.String("period")})
			if err != nil {
				return err
			}
			return s.printReconciliation(raw)
		}),
	}
}

// printReconciliation prints the comparison of the log with what is billed. Any difference is an error, so that a script can
// rely on the exit code; unanswered requests are not a difference.
func (s session) printReconciliation(raw json.RawMessage) error {
	var r body.Reconciliation
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	// The whole result is printed before the difference becomes an error.
	err := printResource(s, raw, s.printComparison)
	if err == nil && len(r.Differences) > 0 {
		err = fmt.Errorf("the log and what is billed differ in %d places", len(r.Differences))
	}
	return err
}

// printComparison prints the totals, a table of the differences and the unanswered requests.
func (s session) printComparison(r body.Reconciliation) error {
	if err := s.PrintLine("%d periods, %d lines, %d requests on the log; %d differences", r.Periods, r.Lines, r.Requests, len(r.Differences)); err != nil {
		return err
	}
	if len(r.Differences) > 0 {
		t := terminal.Table{{"CONTRACT", "PERIOD", "WHAT", "DAY", "ACCOUNT", "KEY", "ENDPOINT", "LOG", "SHOWN"}}
		for _, d := range r.Differences {
			t = append(t, []string{d.Contract, d.Period, d.Kind, formatDay(d.Day), d.Account, d.Key, d.Endpoint, d.InLog, d.Shown})
		}
		if err := s.PrintTable(t); err != nil {
			return err
		}
	}
	return s.printUnanswered(r.Unanswered)
}

// printUnanswered prints the requests that instances counted last before they were killed: billed, and perhaps not answered.
// An instance that still runs is listed as well, since nothing on the log says that it has ended.
func (s session) printUnanswered(all []body.Unanswered) error {
	if len(all) == 0 {
		return nil
	}
	// One row for each line of an instance: an instance without lines counted nothing that may be unanswered.
	t := terminal.Table{{"INSTANCE", "STARTED", "RUNS", "ACCOUNT", "PERIOD", "DAY", "KEY", "ENDPOINT", "REQUESTS"}}
	for _, u := range all {
		runs := ""
		if u.Running {
			runs = "yes"
		}
		for _, l := range u.Lines {
			t = append(t, []string{u.InstanceID, s.formatTime(u.Started), runs, l.Account, l.Period, l.Day, l.Key, l.Endpoint, fmt.Sprint(l.Requests)})
		}
	}
	if err := s.PrintLine("\nCounted last by instances that have not ended in good order; of those that do not run it may be unanswered:"); err != nil {
		return err
	}
	return s.PrintTable(t)
}

// formatDay formats a day as 2026-11-21; "" for the zero date.
func formatDay(d plan.Date) string {
	if d == (plan.Date{}) {
		return ""
	}
	return d.String()
}

// usageAdjustCommand is lieudit usage adjust: POST /usage:adjust. A closed period stays as it was closed; the adjustment is
// an event of its own with a reason, and only another adjustment undoes it. CONTRACT, --period, --day, --key, --endpoint and --account
// name the line.
func (p Program) usageAdjustCommand() *cli.Command {
	return &cli.Command{
		Name:      "adjust",
		Usage:     "Correct a line of a closed period, for good",
		ArgsUsage: "CONTRACT",
		Description: `What the period was closed with stays; who corrected it and why is on the log.

  lieudit usage adjust mende --requests=-12 --period 2026-10-21 --day 2026-10-30 --key KEY --endpoint "GET /me" --reason "outage of 30 October"`,
		Flags: p.areaFlags(
			&cli.Int64Flag{Name: "requests", Required: true, Usage: "`HOW MANY` more, or with a minus less"},
			&cli.StringFlag{Name: "period", Required: true, Usage: "first `DAY` of the period, or the month it begins in as in 2026-10", Validator: validatePeriod},
			&cli.StringFlag{Name: "day", Required: true, Usage: "`DAY` of the line"},
			&cli.StringFlag{Name: "key", Required: true, Usage: "`ID` of the key"},
			&cli.StringFlag{Name: "endpoint", Required: true, Usage: "`ENDPOINT`, such as GET /me"},
			&cli.StringFlag{Name: "account", Usage: "`ID` of the sub-client, where the contract is an agency's"},
			&cli.StringFlag{Name: "reason", Required: true, Usage: "`WHY`, for the audit trail"},
		),
		Action: p.areaAction(adjustUsage),
	}
}

// adjustUsage sends POST /usage:adjust and prints the line as it is billed from now on. A day that cannot be read is
// wrong usage.
func adjustUsage(ctx context.Context, s session) error {
	request := body.AdjustUsage{
		Contract: s.Args().First(), Account: s.String("account"), Key: s.String("key"), Endpoint: s.String("endpoint"),
		Requests: s.Int64("requests"), Reason: s.String("reason"), Period: s.String("period"),
	}
	var err error
	if request.Day, err = plan.ParseDate(s.String("day")); err != nil { // here, so that the error can name the flag
		return terminal.NewUsageError(s.Command, "--day: %v", err)
	}
	raw, err := s.client.Post(ctx, "/usage:adjust", request)
	if err != nil {
		return err
	}
	return printResource(s, raw, func(l body.BilledLine) error {
		return s.PrintLine("%s, %s, %s, %s: %d requests", terminal.SanitizeText(l.Account), l.Day, terminal.SanitizeText(l.Key), terminal.SanitizeText(l.Endpoint), l.Requests)
	})
}
