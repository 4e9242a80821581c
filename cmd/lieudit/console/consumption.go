package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/backoffice"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
)

func (p Program) usage() *cli.Command {
	return group("usage", "What was counted: for an account, for invoices; and whether the log says the same",
		p.usageShow(), p.usageExport(), p.usageReconcile(), p.usageAdjust())
}

func (p Program) usageShow() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "Show what counts for an account in a period",
		ArgsUsage: "ACCOUNT",
		Description: `  lieudit usage show mende
  lieudit usage show mende --period 2026-11-21 --by key,day`,
		Flags: p.areaFlags(
			&cli.StringFlag{Name: "period", Usage: "its first `DAY`; the running period when left out"},
			&cli.StringFlag{Name: "by", Value: "endpoint", Usage: "what to keep apart: `WORDS` out of key, endpoint and day with commas between"},
		),
		Action: p.visiting(func(ctx context.Context, v visit) error {
			raw, err := v.api.Get(ctx, backoffice.Path("", "accounts", v.Args().First(), "usage"), v.asked("period", "by"))
			if err != nil {
				return err
			}
			return one(v, raw, v.counted)
		}),
	}
}

// asked is a query of the flags that were given, or have a default.
func (v visit) asked(flags ...string) url.Values {
	query := url.Values{}
	for _, name := range flags {
		if value := v.String(name); value != "" {
			query.Set(name, value)
		}
	}
	return query
}

func (v visit) counted(u body.Usage) error {
	err := v.record(
		"period", v.short(u.Start)+" to "+v.short(u.End),
		"counts for", u.Agency,
		"limit", fmt.Sprint(u.Limit),
		"counted", fmt.Sprint(u.Total),
		"left", fmt.Sprint(u.Remaining),
		"closed", v.short(u.Closed),
	)
	if err != nil || len(u.Lines) == 0 {
		return err
	}
	t := table{{"DAY", "KEY", "ENDPOINT", "REQUESTS"}}
	for _, l := range u.Lines {
		t = append(t, []string{dayOf(l.Day), l.Key, l.Endpoint, fmt.Sprint(l.Requests)})
	}
	if err := v.say(""); err != nil {
		return err
	}
	return v.table(t)
}

func (p Program) usageExport() *cli.Command {
	return &cli.Command{
		Name:  "export",
		Usage: "Write what counts for all accounts, line by line, for invoices",
		Description: `Lines are kept apart by account, period, day, key and endpoint, and come as they are read.

  lieudit usage export --period 2026-11 > november.csv
  lieudit usage export --period 2026-11 --excel > novembre.csv
  lieudit usage export --json`,
		Flags: p.areaFlags(
			periodsFlag(),
			&cli.StringFlag{Name: "format", Value: "csv", Usage: "`FORMAT`: csv, json or ndjson; --json is ndjson", Validator: oneOf("csv", "json", "ndjson")},
			&cli.BoolFlag{Name: "excel", Usage: "CSV as a French Excel opens it"},
		),
		Action: p.visiting(func(ctx context.Context, v visit) error {
			query := v.asked("period")
			query.Set("format", strings.ToLower(v.String("format")))
			if v.Bool("json") {
				query.Set("format", "ndjson")
			}
			if v.Bool("excel") {
				query.Set("tableur", "excel")
			}
			return v.api.Patient().Copy(ctx, "/usage", query, v.Out)
		}),
	}
}

func periodsFlag() cli.Flag {
	return &cli.StringFlag{Name: "period", Usage: "periods whose first `DAY`, or month as in 2026-11, is this; all when left out"}
}

func (p Program) usageReconcile() *cli.Command {
	return &cli.Command{
		Name:  "reconcile",
		Usage: "Count anew from the log and compare with what is shown and billed; exit 1 on any difference",
		Description: `It also lists what instances counted last that did not end in good order: they may have been billed and not
answered.

  lieudit usage reconcile
  lieudit usage reconcile --period 2026-11`,
		Flags: p.areaFlags(periodsFlag()),
		Action: p.visiting(func(ctx context.Context, v visit) error {
			raw, err := v.api.Patient().Post(ctx, "/usage:reconcile", body.ReconcileUsage{Period: v.String("period")})
			if err != nil {
				return err
			}
			return v.reconciled(raw)
		}),
	}
}

// reconciled prints how the log and what is billed compare. That they differ is an error.
func (v visit) reconciled(raw json.RawMessage) error {
	var r body.Reconciliation
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	err := one(v, raw, v.comparison)
	if err == nil && len(r.Differences) > 0 {
		err = fmt.Errorf("the log and what is billed differ in %d places", len(r.Differences))
	}
	return err
}

func (v visit) comparison(r body.Reconciliation) error {
	if err := v.say("%d periods, %d lines, %d requests on the log; %d differences", r.Periods, r.Lines, r.Requests, len(r.Differences)); err != nil {
		return err
	}
	if len(r.Differences) > 0 {
		t := table{{"CONTRACT", "PERIOD", "WHAT", "DAY", "ACCOUNT", "KEY", "ENDPOINT", "LOG", "SHOWN"}}
		for _, d := range r.Differences {
			t = append(t, []string{d.Contract, d.Period, d.Kind, dayOf(d.Day), d.Account, d.Key, d.Endpoint, d.Log, d.Shown})
		}
		if err := v.table(t); err != nil {
			return err
		}
	}
	return v.unanswered(r.Unanswered)
}

// unanswered tells what may have been billed and not answered.
func (v visit) unanswered(all []body.Unanswered) error {
	if len(all) == 0 {
		return nil
	}
	t := table{{"INSTANCE", "STARTED", "RUNS", "ACCOUNT", "PERIOD", "DAY", "KEY", "ENDPOINT", "REQUESTS"}}
	for _, u := range all {
		runs := ""
		if u.Running {
			runs = "yes"
		}
		for _, l := range u.Lines {
			t = append(t, []string{u.Incarnation, v.short(u.Started), runs, l.Account, l.Period, l.Day, l.Key, l.Endpoint, fmt.Sprint(l.Requests)})
		}
	}
	if err := v.say("\nCounted last by instances that have not ended in good order; of those that do not run it may be unanswered:"); err != nil {
		return err
	}
	return v.table(t)
}

func dayOf(d plan.Date) string {
	if d == (plan.Date{}) {
		return ""
	}
	return d.String()
}
