package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/adminclient"
	"lieudit/cmd/terminal"
	"lieudit/http/sitefile"
	"lieudit/schemas/body"
)

// sitesCommand groups the export and import of a customer's sites: :export and :sync of the API. A site is one shop, depot
// or other place of the customer; a referential is a named group of them. The commands use the customer's own key.
func (p Program) sitesCommand() *cli.Command {
	return terminal.NewGroup("sites", "Import and export the sites of a referential, with a customer's key", p.sitesImportCommand(), p.sitesExportCommand())
}

// sitesExportCommand is lieudit sites export: GET /locations/referentiels/{code}/sites:export.
func (p Program) sitesExportCommand() *cli.Command {
	return &cli.Command{
		Name:  "export",
		Usage: "Write the active sites of a referential to a file",
		Description: `The file can be imported again, which changes nothing.

  lieudit sites export --referential shops > shops.csv
  lieudit sites export --referential shops --format geojson --out shops.geojson`,
		Flags: p.apiFlags(
			&cli.StringFlag{Name: "format", Value: "csv", Usage: "`FORMAT`: csv, geojson or ndjson", Validator: terminal.OneOf("csv", "geojson", "ndjson")},
			&cli.BoolFlag{Name: "excel", Usage: "CSV as a French Excel opens it"},
			&cli.StringFlag{Name: "out", Usage: "`FILE` to write; standard output when left out", TakesFile: true},
		),
		Action: p.apiAction(exportSites),
	}
}

// exportSites copies the export of a referential to standard output while it arrives, or to a file that appears when it is
// complete. The parameter tableur=excel asks for CSV as a French Excel opens it.
func exportSites(ctx context.Context, s session) error {
	query := url.Values{"format": {strings.ToLower(s.String("format"))}}
	if s.Bool("excel") {
		query.Set("tableur", "excel")
	}
	path := adminclient.JoinPath("", "locations", "referentiels", s.String("referential")) + "/sites:export"
	out := s.String("out")
	if out == "" {
		return s.client.Download(ctx, path, query, s.Out)
	}
	file, err := createAtomicFile(out)
	if err != nil {
		return err
	}
	return file.finish(s.client.Download(ctx, path, query, file))
}

// sitesImportCommand is lieudit sites import: POST /locations/referentiels/{code}/sites:sync with the rows of a site
// file. A sync makes the referential's sites those of the file, all or nothing.
func (p Program) sitesImportCommand() *cli.Command {
	return &cli.Command{
		Name:      "import",
		Usage:     "Make the sites of a referential those of a file",
		ArgsUsage: "FILE",
		Description: `FILE is CSV, GeoJSON or newline-delimited JSON, - for standard input. Columns of CSV go by their names, in French or
English (nom or name, cp or postcode, lon or longitude); separators, decimal commas and Windows-1252 are seen. It is the
whole set: sites the file does not have become inactive. All is written, or nothing.

  lieudit sites import shops.csv --referential shops --dry-run
  lieudit sites import shops.csv --referential shops --ignore Surface --confirm`,
		Flags: p.apiFlags(
			&cli.BoolFlag{Name: "dry-run", Usage: "say what would be done and do nothing"},
			&cli.BoolFlag{Name: "confirm", Usage: "do it even if more than half of the active sites become inactive"},
			&cli.StringSliceFlag{Name: "ignore", Usage: "`COLUMNS` of CSV that say nothing about sites"},
		),
		Action: p.apiAction(importSites),
	}
}

// importSites reads a whole site file and sends its rows in one sync. sitefile.Read turns every format into JSON rows
// with their line numbers, so that an error of the file or of the service names the line in the user's file.
func importSites(ctx context.Context, s session) error {
	name := s.Args().First()
	file, err := s.readInput(name)
	if err != nil {
		return err
	}
	if name == "-" {
		name = "standard input" // for messages
	}
	rows, err := sitefile.Read(file, s.StringSlice("ignore")...)
	if err != nil {
		return locateReadError(name, err)
	}
	path := adminclient.JoinPath("", "locations", "referentiels", s.String("referential")) + "/sites:sync"
	raw, err := s.client.Post(ctx, path, newSyncBody(rows, s.Bool("confirm"), s.Bool("dry-run")))
	// Broken rules are about rows of the body: they become errors about lines of the file.
	if apiError := new(adminclient.APIError); errors.As(err, &apiError) && len(apiError.FieldErrors) > 0 {
		return locateFieldErrors(name, rows, apiError.FieldErrors)
	}
	if err != nil {
		return explainSyncRefusal(err)
	}
	return s.printSync(raw)
}

// locateReadError adds to an error of reading a site file the name of the file and, where it is known, the line.
func locateReadError(name string, err error) error {
	if line := new(sitefile.LineError); errors.As(err, &line) {
		return fmt.Errorf("%s:%d: %s", name, line.Line, line.Reason)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// readInput reads a whole file, or standard input where the name is "-".
func (s session) readInput(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(s.In)
	}
	return os.ReadFile(name)
}

// newSyncBody is the body of a sync, which holds the whole file at once: a sync is one request. The rows are JSON already and stay as they are. confirmed allows a sync that
// deactivates more than half of the active sites; a dry run only says what a sync would do.
func newSyncBody(rows []sitefile.Row, confirmed, isDryRun bool) any {
	all := make([]json.RawMessage, len(rows))
	for i, r := range rows {
		all[i] = r.JSON
	}
	return struct {
		Sites   []json.RawMessage `json:"sites"`
		Confirm bool              `json:"confirmer_reduction,omitempty"`
		DryRun  bool              `json:"dry_run,omitempty"`
	}{all, confirmed, isDryRun}
}

// locateFieldErrors returns an error with one line for each broken rule. A rule about a row names the line of that row in
// the site file; another names the file alone.
func locateFieldErrors(name string, rows []sitefile.Row, items []adminclient.FieldError) error {
	var out strings.Builder
	for _, i := range items {
		row, field, ok := i.Row("sites")
		if !ok || row >= len(rows) {
			fmt.Fprintf(&out, "%s: %s\n", name, i.Msg)
			continue
		}
		fmt.Fprintf(&out, "%s:%d: %s\n", name, rows[row].Line, strings.TrimPrefix(field+": "+i.Msg, ": "))
	}
	if len(items) == 100 { // the service sends no more (problem.MaxViolations)
		fmt.Fprintln(&out, "… there may be more")
	}
	out.WriteString("nothing was written")
	return errors.New(out.String())
}

// explainSyncRefusal adds to the refusal of a sync that nothing was written, and what can be done. Another error is returned
// as it is: it does not say whether the sync was written.
func explainSyncRefusal(err error) error {
	refused := new(adminclient.APIError)
	switch {
	case !errors.As(err, &refused):
	case refused.Code == "reduction_suspecte":
		return fmt.Errorf("%w\nnothing was written; --confirm says that it is meant", err)
	case refused.Code == "capacite_sites_depassee":
		return fmt.Errorf("%s\nnothing was written", refused.Detail) // the detail holds the numbers
	}
	return err
}

// printSync prints what a sync did, or would do in a dry run. A dry run of a sync that the service would refuse is an error,
// so that a script can rely on the exit code.
func (s session) printSync(raw json.RawMessage) error {
	var synced body.Synced
	if err := json.Unmarshal(raw, &synced); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	err := printResource(s, raw, s.printSyncCounts)
	if err == nil && synced.Refusal != nil {
		refusal, _ := json.Marshal(synced.Refusal) // cannot fail: it was decoded from JSON
		err = fmt.Errorf("it would be refused: %s", refusal)
	}
	return err
}

// printSyncCounts prints the counts of a sync for people, without those that are zero. The capacity line shows the active
// sites of the account after the sync, the number that its plan includes, and the number above which it is refused.
func (s session) printSyncCounts(r body.Synced) error {
	count := func(n int) string { return terminal.EmptyIf(n == 0, terminal.GroupThousands(n)) }
	if s.Bool("dry-run") {
		if err := s.PrintLine("nothing was written; it would be:"); err != nil {
			return err
		}
	}
	return s.PrintFields(
		"created", count(r.Created), "updated", count(r.Updated), "unchanged", count(r.Unchanged),
		"reactivated", count(r.Reactivated), "deactivated", count(r.Deactivated),
		"placed by address", count(r.Geocoded), "without position", describeUnplaced(r.Unlocated),
		"doubtful", describeAlerts(r.AlertCounts),
		"active", fmt.Sprintf("%s, before %s", terminal.GroupThousands(r.ActiveAfter), terminal.GroupThousands(r.ActiveBefore)),
		"capacity", fmt.Sprintf("%s of %s, at most %s", terminal.GroupThousands(r.AccountActive+r.ActiveAfter-r.ActiveBefore), terminal.GroupThousands(r.Capacity), terminal.GroupThousands(r.Ceiling)),
	)
}

// describeAlerts counts what is doubtful by code; "" when nothing is. --json has the sites.
func describeAlerts(n body.AlertCounts) string {
	var parts []string
	for _, kind := range []struct {
		code  string
		count int
	}{
		{"position_inversee", n.InvertedPosition}, {"position_nulle", n.NullPosition}, {"position_loin", n.FarPosition},
		{"place_commune", n.CommunePosition}, {"adresse_vide", n.EmptyAddress}, {"sans_nom", n.EmptyName},
	} {
		if kind.count > 0 {
			parts = append(parts, terminal.GroupThousands(kind.count)+" "+kind.code)
		}
	}
	return strings.Join(parts, ", ")
}

// describeUnplaced counts the sites without a position and names the first ten by their ids; "" when there are none.
func describeUnplaced(ids []string) string {
	const maxShown = 10
	shown := strings.Join(ids[:min(len(ids), maxShown)], ", ")
	if len(ids) > maxShown {
		shown += ", …"
	}
	return terminal.EmptyIf(len(ids) == 0, fmt.Sprintf("%s (%s)", terminal.GroupThousands(len(ids)), shown))
}
