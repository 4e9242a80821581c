package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/adminclient"
	"lieudit/cmd/terminal"
	"lieudit/http/sitefile"
	"lieudit/schemas/body"
)

func (p Program) sitesCommand() *cli.Command {
	return terminal.NewGroup("sites", "Import and export the sites of a referential, with a customer's key", p.sitesImportCommand(), p.sitesExportCommand())
}

// apiFlags are the flags of every command that works with the API, after its own.
func (p Program) apiFlags(commandFlags ...cli.Flag) []cli.Flag {
	file := p.StringFlag("key-file", "", "`FILE` with the secret key, - for standard input")
	file.TakesFile = true
	return append([]cli.Flag{&cli.StringFlag{Name: "referential", Aliases: []string{"referentiel"}, Usage: "`CODE` of the referential", Required: true}},
		append(commandFlags, p.StringFlag("url", "http://127.0.0.1:8080", "`URL` of the API"), file,
			&cli.StringFlag{Name: "key", Usage: "secret `KEY`; other programs can see it here: LIEUDIT_KEY or --key-file keep it"},
			&cli.BoolFlag{Name: "json", Usage: "print the API's own JSON"})...)
}

// apiSession is a command's work with the API: its flags and words, and the API it asks.
type apiSession struct {
	*cli.Command
	Program
	client *adminclient.Client
}

// apiAction makes work with the API a command's action.
func (p Program) apiAction(action func(context.Context, apiSession) error) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		key, err := p.readAPIKey(c)
		if err != nil {
			return err
		}
		client, err := adminclient.NewAPI(c.String("url"), key)
		if err != nil {
			return terminal.NewUsageError(c, "--url: %v", err)
		}
		return explainAPIError(action(ctx, apiSession{c, p, client.WithoutTimeout()}))
	}
}

// readAPIKey is the one to work with: that of the flag, of the file that was asked for, or of the environment.
func (p Program) readAPIKey(c *cli.Command) (string, error) {
	if key := c.String("key"); key != "" {
		return key, nil
	}
	if file := c.String("key-file"); file != "" {
		key, err := p.readSecret(file)
		if err == nil && key == "" {
			err = fmt.Errorf("%s is empty", file)
		}
		if err != nil {
			err = fmt.Errorf("reading the key: %w", err)
		}
		return key, err
	}
	if key, _ := p.LookupEnv("LIEUDIT_KEY"); strings.TrimSpace(key) != "" {
		return strings.TrimSpace(key), nil
	}
	return "", errors.New("whose sites? name a secret key with LIEUDIT_KEY or --key-file FILE (lieudit key issue ACCOUNT)")
}

// explainAPIError says what to do about what went wrong with the API, where there is something to do.
func explainAPIError(err error) error {
	var unreachable *adminclient.UnreachableError
	var apiError *adminclient.APIError
	switch {
	case errors.As(err, &unreachable):
		return fmt.Errorf("%s\nis the service running (lieudit serve)? another address: --url URL or LIEUDIT_URL", unreachable.Error())
	case !errors.As(err, &apiError):
		return err
	case apiError.Status == http.StatusUnauthorized:
		return fmt.Errorf("%s\nthe service does not take this key: it is of another service or revoked", apiError.Error())
	case apiError.Status == http.StatusNotFound:
		return fmt.Errorf("%s\nthere is no such referential: POST /locations/referentiels opens one", apiError.Error())
	case apiError.Code == "reduction_suspecte":
		return fmt.Errorf("%s\nnothing was written; --confirm says that it is meant", apiError.Error())
	case apiError.Code == "capacite_sites_depassee":
		return fmt.Errorf("%s\nnothing was written", apiError.Detail)
	}
	return err
}

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

func exportSites(ctx context.Context, s apiSession) error {
	query := url.Values{"format": {strings.ToLower(s.String("format"))}}
	if s.Bool("excel") {
		query.Set("tableur", "excel")
	}
	path := adminclient.JoinPath("", "locations", "referentiels", s.String("referential")) + "/sites:export"
	out := s.String("out")
	if out == "" {
		return s.client.Download(ctx, path, query, s.Out)
	}
	return writeFileWhole(out, func(w io.Writer) error { return s.client.Download(ctx, path, query, w) })
}

// writeFileWhole writes a file that is there when all of it is.
func writeFileWhole(name string, write func(io.Writer) error) error {
	part := name + ".part"
	f, err := os.Create(part)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return os.Rename(part, name)
}

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

func importSites(ctx context.Context, s apiSession) error {
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
		return err
	}
	return s.printSync(raw)
}

// locateReadError says where a file cannot be read.
func locateReadError(name string, err error) error {
	if line := new(sitefile.LineError); errors.As(err, &line) {
		return fmt.Errorf("%s:%d: %s", name, line.Line, line.Reason)
	}
	return fmt.Errorf("%s: %w", name, err)
}

func (s apiSession) readInput(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(s.In)
	}
	return os.ReadFile(name)
}

// newSyncBody is the body of a sync.
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

// locateFieldErrors tells of each broken rule on which line of the file it is.
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

// printSync prints what a sync did. A dry run of what would be refused is a failure.
func (session apiSession) printSync(raw json.RawMessage) error {
	var s body.Synced
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	var err error
	if session.Bool("json") {
		var line bytes.Buffer
		if err = json.Compact(&line, raw); err == nil {
			_, err = fmt.Fprintln(session.Out, line.String())
		}
	} else {
		err = session.printSyncCounts(s)
	}
	if err == nil && s.Refusal != nil {
		refusal, _ := json.Marshal(s.Refusal) // it was JSON
		err = fmt.Errorf("it would be refused: %s", refusal)
	}
	return err
}

func (session apiSession) printSyncCounts(s body.Synced) error {
	count := func(n int) string { return terminal.EmptyIf(n == 0, terminal.GroupThousands(n)) }
	if session.Bool("dry-run") {
		if err := session.PrintLine("nothing was written; it would be:"); err != nil {
			return err
		}
	}
	return session.PrintFields(
		"created", count(s.Created), "updated", count(s.Updated), "unchanged", count(s.Unchanged),
		"reactivated", count(s.Reactivated), "deactivated", count(s.Deactivated),
		"placed by address", count(s.Geocoded), "without position", describeUnplaced(s.Unlocated),
		"active", fmt.Sprintf("%s, before %s", terminal.GroupThousands(s.ActiveAfter), terminal.GroupThousands(s.ActiveBefore)),
		"capacity", fmt.Sprintf("%s of %s, at most %s", terminal.GroupThousands(s.AccountActive+s.ActiveAfter-s.ActiveBefore), terminal.GroupThousands(s.Capacity), terminal.GroupThousands(s.Ceiling)),
	)
}

// describeUnplaced names sites that have no position, not all of many.
func describeUnplaced(ids []string) string {
	const most = 10
	shown := strings.Join(ids[:min(len(ids), most)], ", ")
	if len(ids) > most {
		shown += ", …"
	}
	return terminal.EmptyIf(len(ids) == 0, fmt.Sprintf("%s (%s)", terminal.GroupThousands(len(ids)), shown))
}
