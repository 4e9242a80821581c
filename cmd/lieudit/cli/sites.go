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

// sitesCommand groups the export and import of a customer's sites, with the customer's key: :export and :sync of the API.
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

// exportSites writes the export of a referential to standard output, or to a file that appears when it is complete.
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
	file, err := createWhole(out)
	if err != nil {
		return err
	}
	return file.finish(s.client.Download(ctx, path, query, file))
}

// sitesImportCommand is lieudit sites import: POST /locations/referentiels/{code}/sites:sync with the rows of a site
// file.
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

// importSites reads a site file and makes it the referential's whole set of sites, with one sync.
func importSites(ctx context.Context, s session) error {
	name := s.Args().First()
	file, err := s.readInput(name)
	if err != nil {
		return err
	}
	if name == "-" {
		name = "standard input"
	}
	rows, err := sitefile.Read(file, s.StringSlice("ignore")...)
	if err != nil {
		return locateReadError(name, err)
	}
	path := adminclient.JoinPath("", "locations", "referentiels", s.String("referential")) + "/sites:sync"
	raw, err := s.client.Post(ctx, path, newSyncBody(rows, s.Bool("confirm"), s.Bool("dry-run")))
	if apiError := new(adminclient.APIError); errors.As(err, &apiError) && len(apiError.FieldErrors) > 0 {
		return locateFieldErrors(name, rows, apiError.FieldErrors)
	}
	if err != nil {
		return explainSyncRefusal(err)
	}
	return s.printSync(raw)
}

// locateReadError adds to an error of reading a site file the name of the file and the line.
func locateReadError(name string, err error) error {
	if line := new(sitefile.LineError); errors.As(err, &line) {
		return fmt.Errorf("%s:%d: %s", name, line.Line, line.Reason)
	}
	return fmt.Errorf("%s: %w", name, err)
}

func (s session) readInput(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(s.In)
	}
	return os.ReadFile(name)
}

// newSyncBody is the body of a sync. The rows are JSON already, and stay as they are.
func newSyncBody(rows []sitefile.Row, confirmed, dry bool) any {
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

// locateFieldErrors is an error with one line for each broken rule, which names the line of the site file.
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
	if len(items) == 100 {
		fmt.Fprintln(&out, "… there may be more")
	}
	out.WriteString("nothing was written")
	return errors.New(out.String())
}

// explainSyncRefusal says of a refused sync that nothing was written, and what can be done.
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

// printSync prints what a sync did. A dry run that the service would refuse is an error.
func (s session) printSync(raw json.RawMessage) error {
	var synced body.Synced
	if err := json.Unmarshal(raw, &synced); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	err := printOne(s, raw, s.printSyncCounts)
	if err == nil && synced.Refusal != nil {
		refusal, _ := json.Marshal(synced.Refusal) // it was JSON
		err = fmt.Errorf("it would be refused: %s", refusal)
	}
	return err
}

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
		"active", fmt.Sprintf("%s, before %s", terminal.GroupThousands(r.ActiveAfter), terminal.GroupThousands(r.ActiveBefore)),
		"capacity", fmt.Sprintf("%s of %s, at most %s", terminal.GroupThousands(r.AccountActive+r.ActiveAfter-r.ActiveBefore), terminal.GroupThousands(r.Capacity), terminal.GroupThousands(r.Ceiling)),
	)
}

// describeUnplaced counts the sites without a position and names the first ten.
func describeUnplaced(ids []string) string {
	const most = 10
	shown := strings.Join(ids[:min(len(ids), most)], ", ")
	if len(ids) > most {
		shown += ", …"
	}
	return terminal.EmptyIf(len(ids) == 0, fmt.Sprintf("%s (%s)", terminal.GroupThousands(len(ids)), shown))
}
