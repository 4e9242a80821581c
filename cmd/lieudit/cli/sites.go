package cli

import (
	"context"
	"net/url"
	"strings"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/adminclient"
	"lieudit/cmd/terminal"
)

// sitesCommand groups the export and import of a customer's sites: :export and :sync of the API. A site is a shop, a depot
// or another place of the customer; a referential is a named group of sites. The commands use the customer's own key.
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
		Flags: p.sitesFlags(
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
