package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/bench/places"
	"lieudit/cmd/terminal"
)

// placesCommand imports files of places and tells of each what became of it.
func (p program) placesCommand() *cli.Command {
	return &cli.Command{
		Name:      "places",
		Usage:     "Import files of places as a user does, and tell what became of each",
		ArgsUsage: "FILE...",
		Description: `Each file is imported with no flag but the referential, and once more with the flags that the refusal proposes. The
table tells what is recognized, mended, doubted and stored, and whether exports as CSV, Excel CSV, GeoJSON and NDJSON
bring the same sites back, into another account and into their own referential. OUTSIDE counts sites over a kilometre
outside their commune that no alert about their position names. It leaves nothing behind.

  go run ./cmd/bench places shops.xlsx museums.csv
  go run ./cmd/bench places --vintage adresses-48.csv.gz --json *.geojson`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "vintage", Usage: "`FILE` of the address base, or a vintage; invented when left out", TakesFile: true},
			&cli.StringFlag{Name: "dir", Value: ".", Usage: "`FOLDER` on the disk to use", TakesFile: true},
			&cli.BoolFlag{Name: "json", Usage: "print one line of JSON a file"},
		},
		Action: p.importPlaces,
	}
}

// importPlaces runs the imports. With --json each file is printed as soon as it is done, otherwise all as tables at the end.
func (p program) importPlaces(ctx context.Context, c *cli.Command) error {
	bar := p.NewProgressBar()
	defer bar.Clear()
	var files []places.File
	out := places.Output{
		Progress: func(what string, done, total int) { bar.Update(what, int64(done), int64(total)) },
		Report: func(f places.File) error {
			if c.Bool("json") {
				return p.PrintJSON(f)
			}
			files = append(files, f)
			return nil
		},
	}
	o := places.Options{Dir: c.String("dir"), Files: c.Args().Slice(), Vintage: c.StringSlice("vintage")}
	if err := places.Run(ctx, o, out); err != nil || c.Bool("json") {
		return err
	}
	bar.Clear()
	return p.printPlaces(files)
}

// printPlaces prints a row a file, the totals below, and then in words what a row has no room for.
func (p program) printPlaces(files []places.File) error {
	t := terminal.Table{{
		"FILE", "ROWS", "FIRST TRY", "SECOND", "FIELDS", "PROPERTIES", "LEFT OUT", "MENDED", "DOUBTS",
		"SITES", "POSITION", "NAMED", "PLACED", "OUTSIDE", "ROUND TRIP", "SECONDS", "PEAK", "ALERTS",
	}}
	var sum places.Totals
	for _, f := range files {
		sum.Add(f)
		t = append(t, placesRow(f))
	}
	t = append(t, totalsRow(sum))
	err := errors.Join(p.PrintTable(t), p.PrintLine(""))
	for _, f := range files {
		for _, line := range describePlaces(f) {
			err = errors.Join(err, p.PrintLine("%s", terminal.SanitizeText(f.Name+": "+line)))
		}
	}
	return err
}

// placesRow is the row of a file. What was not done is an empty cell.
func placesRow(f places.File) []string {
	second, trip := "", ""
	if f.Second != nil {
		second = describeAttempt(*f.Second)
	}
	if len(f.RoundTrips) > 0 {
		trip = describeSame(f.HasSameRoundTrips())
	}
	row := []string{f.Name, terminal.GroupThousands(f.Rows), describeAttempt(f.First), second}
	row = append(row, countCells(f.Columns.Fields, f.Columns.Properties, f.Columns.LeftOut, f.CountMended(), f.CountDoubts())...)
	row = append(row, countCells(f.Sites, f.Positioned, f.Named, f.Placed, len(f.Outside))...)
	return append(row, trip, fmt.Sprintf("%.2f", f.Seconds), formatPeak(f.PeakKB), describeAlerts(f.Alerts))
}

// totalsRow is the row below all files, in the columns of placesRow.
func totalsRow(t places.Totals) []string {
	in := func(n int) string { return fmt.Sprintf("%d in", n) }
	row := []string{fmt.Sprintf("%d files", t.Files), terminal.GroupThousands(t.Rows), in(t.First), in(t.Second)}
	row = append(row, countCells(t.Fields, t.Properties, t.LeftOut, t.Mended, t.Doubts)...)
	row = append(row, countCells(t.Sites, t.Positioned, t.Named, t.Placed, t.Outside)...)
	return append(row, fmt.Sprintf("%d same", t.Same), fmt.Sprintf("%.2f", t.Seconds), formatPeak(t.PeakKB), strconv.Itoa(t.Alerts))
}

// countCells are counts as cells. A zero is shown: it is a result.
func countCells(counts ...int) []string {
	cells := make([]string, len(counts))
	for i, n := range counts {
		cells[i] = terminal.GroupThousands(n)
	}
	return cells
}

// describeAttempt says how a try ended. Its reason stands below the table.
func describeAttempt(a places.Attempt) string {
	if a.Imported {
		return "in"
	}
	return "refused"
}

// describeSame reports whether all exports of a file brought the same sites back. What differs stands below the table.
func describeSame(isSame bool) string {
	if isSame {
		return "same"
	}
	return "differs"
}

// formatPeak is an empty cell where the system does not say it.
func formatPeak(kB int) string {
	return terminal.EmptyIf(kB == 0, terminal.FormatBytes(int64(kB)*1024))
}

// describeAlerts lists counts by code.
func describeAlerts(counts map[string]int) string {
	var texts []string
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		texts = append(texts, fmt.Sprintf("%s %d", code, counts[code]))
	}
	return strings.Join(texts, ", ")
}

// describePlaces is the refusals of a file, the differences of its round trips and the site that is farthest outside.
func describePlaces(f places.File) (lines []string) {
	if !f.First.Imported {
		lines = append(lines, "refused: "+f.First.Reason)
	}
	if f.Second != nil {
		second := "with " + strings.Join(f.Second.Flags, " ") + ": " + describeAttempt(*f.Second) + ": " + f.Second.Reason
		lines = append(lines, strings.TrimSuffix(second, ": "))
	}
	for _, note := range f.Notes {
		lines = append(lines, "note: "+note)
	}
	for _, t := range f.RoundTrips {
		if t.Elsewhere != "" {
			lines = append(lines, t.Form+" into another account: "+t.Elsewhere)
		}
		if t.Again != "" {
			lines = append(lines, t.Form+" again: "+t.Again)
		}
	}
	if len(f.Outside) > 0 {
		o := f.Outside[0]
		lines = append(lines, fmt.Sprintf("%d sites stand outside their commune without an alert, the farthest %s, %.1f km from %s",
			len(f.Outside), o.ExternalID, o.Kilometres, o.Commune))
	}
	return lines
}
