package cli

import (
	"context"
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
	"lieudit/schemas/refusal"
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
	case apiError.Code == string(refusal.SuspiciousReduction):
		return fmt.Errorf("%s\nnothing was written; --confirm says that it is meant", apiError.Error())
	case apiError.Code == string(refusal.SitesOverCapacity):
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
