package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/backoffice"
	"lieudit/http/roster"
	"lieudit/schemas/body"
)

func (p Program) sitesImport() *cli.Command {
	return &cli.Command{
		Name:      "import",
		Usage:     "Make the sites of a referential those of a file",
		ArgsUsage: "FILE",
		Description: `FILE is CSV, GeoJSON or newline-delimited JSON, - for standard input. Columns of CSV go by their names, in French or
English (nom or name, cp or postcode, lon or longitude); separators, decimal commas and Windows-1252 are seen. It is the
whole set: sites the file does not have become inactive. All is written, or nothing.

  lieudit sites import shops.csv --referential shops --dry-run
  lieudit sites import shops.csv --referential shops --ignore Surface --confirm`,
		Flags: p.keyFlags(
			&cli.BoolFlag{Name: "dry-run", Usage: "say what would be done and do nothing"},
			&cli.BoolFlag{Name: "confirm", Usage: "do it even if more than half of the active sites become inactive"},
			&cli.StringSliceFlag{Name: "ignore", Usage: "`COLUMNS` of CSV that say nothing about sites"},
		),
		Action: p.calling(importSites),
	}
}

func importSites(ctx context.Context, e errand) error {
	name := e.Args().First()
	file, err := e.readFile(name)
	if err != nil {
		return err
	}
	if name == "-" {
		name = "standard input"
	}
	rows, err := roster.Read(file, e.StringSlice("ignore")...)
	if err != nil {
		return unreadable(name, err)
	}
	path := backoffice.Path("", "locations", "referentiels", e.String("referential")) + "/sites:sync"
	raw, err := e.api.Post(ctx, path, wholeSet(rows, e.Bool("confirm"), e.Bool("dry-run")))
	if refused := new(backoffice.RefusedError); errors.As(err, &refused) && len(refused.Items) > 0 {
		return brokenRows(name, rows, refused.Items)
	}
	if err != nil {
		return err
	}
	return e.synced(raw)
}

// unreadable says where a file cannot be read.
func unreadable(name string, err error) error {
	if line := new(roster.LineError); errors.As(err, &line) {
		return fmt.Errorf("%s:%d: %s", name, line.Line, line.Why)
	}
	return fmt.Errorf("%s: %w", name, err)
}

func (e errand) readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(e.In)
	}
	return os.ReadFile(name)
}

// wholeSet is the body of a sync.
func wholeSet(rows []roster.Row, confirmed, dry bool) any {
	all := make([]json.RawMessage, len(rows))
	for i, r := range rows {
		all[i] = r.JSON
	}
	return struct {
		Sites   []json.RawMessage `json:"sites"`
		Confirm bool              `json:"confirmer_reduction,omitempty"`
		DryRun  bool              `json:"dry_run,omitempty"`
	}{all, confirmed, dry}
}

// brokenRows tells of each broken rule on which line of the file it is.
func brokenRows(name string, rows []roster.Row, items []backoffice.Item) error {
	var out strings.Builder
	for _, i := range items {
		row, field, ok := i.Row("sites")
		if !ok || row >= len(rows) {
			fmt.Fprintf(&out, "%s: %s\n", name, i.Msg)
			continue
		}
		fmt.Fprintf(&out, "%s:%d: %s\n", name, rows[row].Line, strings.TrimPrefix(field+": "+i.Msg, ": "))
	}
	if len(items) == 100 {
		fmt.Fprintln(&out, "… there may be more")
	}
	out.WriteString("nothing was written")
	return errors.New(out.String())
}

// synced prints what a sync did. A dry run of what would be refused is a failure.
func (e errand) synced(raw json.RawMessage) error {
	var s body.Synced
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	var err error
	if e.Bool("json") {
		var line bytes.Buffer
		if err = json.Compact(&line, raw); err == nil {
			_, err = fmt.Fprintln(e.Out, line.String())
		}
	} else {
		err = e.figures(s)
	}
	if err == nil && s.Refusal != nil {
		refusal, _ := json.Marshal(s.Refusal) // it was JSON
		err = fmt.Errorf("it would be refused: %s", refusal)
	}
	return err
}

func (e errand) figures(s body.Synced) error {
	count := func(n int) string { return unless(n == 0, grouped(n)) }
	if e.Bool("dry-run") {
		if err := e.say("nothing was written; it would be:"); err != nil {
			return err
		}
	}
	return e.record(
		"created", count(s.Created), "updated", count(s.Updated), "unchanged", count(s.Unchanged),
		"reactivated", count(s.Reactivated), "deactivated", count(s.Deactivated),
		"placed by address", count(s.Placed), "without position", lost(s.NotPlaced),
		"active", fmt.Sprintf("%s, before %s", grouped(s.After), grouped(s.Before)),
		"capacity", fmt.Sprintf("%s of %s, at most %s", grouped(s.Active+s.After-s.Before), grouped(s.Capacity), grouped(s.Ceiling)),
	)
}

// lost names sites that have no position, not all of many.
func lost(ids []string) string {
	const most = 10
	shown := strings.Join(ids[:min(len(ids), most)], ", ")
	if len(ids) > most {
		shown += ", …"
	}
	return unless(len(ids) == 0, fmt.Sprintf("%s (%s)", grouped(len(ids)), shown))
}
