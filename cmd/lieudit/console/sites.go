package console

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

	"lieudit/cmd/lieudit/backoffice"
)

func (p Program) sites() *cli.Command {
	return group("sites", "Import and export the sites of a referential, with a customer's key", p.sitesImport(), p.sitesExport())
}

// keyFlags are the flags of every command that works with the API, after its own.
func (p Program) keyFlags(own ...cli.Flag) []cli.Flag {
	file := p.text("key-file", "", "`FILE` with the secret key, - for standard input")
	file.TakesFile = true
	return append([]cli.Flag{&cli.StringFlag{Name: "referential", Aliases: []string{"referentiel"}, Usage: "`CODE` of the referential", Required: true}},
		append(own, p.text("url", "http://127.0.0.1:8080", "`URL` of the API"), file,
			&cli.StringFlag{Name: "key", Usage: "secret `KEY`; other programs can see it here: LIEUDIT_KEY or --key-file keep it"},
			&cli.BoolFlag{Name: "json", Usage: "print the API's own JSON"})...)
}

// errand is a command's work with the API: its flags and words, and the API it asks.
type errand struct {
	*cli.Command
	Program
	api *backoffice.Client
}

// calling makes work with the API a command's action.
func (p Program) calling(work func(context.Context, errand) error) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		key, err := p.key(c)
		if err != nil {
			return err
		}
		api, err := backoffice.NewAPI(c.String("url"), key)
		if err != nil {
			return wrong(c, "--url: %v", err)
		}
		return keyAdvice(work(ctx, errand{c, p, api.Patient()}))
	}
}

// key is the one to work with: that of the flag, of the file that was asked for, or of the environment.
func (p Program) key(c *cli.Command) (string, error) {
	if key := c.String("key"); key != "" {
		return key, nil
	}
	if file := c.String("key-file"); file != "" {
		key, err := p.readToken(file)
		if err == nil && key == "" {
			err = fmt.Errorf("%s is empty", file)
		}
		if err != nil {
			err = fmt.Errorf("reading the key: %w", err)
		}
		return key, err
	}
	if key, _ := p.Env("LIEUDIT_KEY"); strings.TrimSpace(key) != "" {
		return strings.TrimSpace(key), nil
	}
	return "", errors.New("whose sites? name a secret key with LIEUDIT_KEY or --key-file FILE (lieudit key issue ACCOUNT)")
}

// keyAdvice says what to do about what went wrong with the API, where there is something to do.
func keyAdvice(err error) error {
	var silent *backoffice.SilentError
	var refused *backoffice.RefusedError
	switch {
	case errors.As(err, &silent):
		return fmt.Errorf("%s\nis the service running (lieudit serve)? another address: --url URL or LIEUDIT_URL", silent.Error())
	case !errors.As(err, &refused):
		return err
	case refused.Status == http.StatusUnauthorized:
		return fmt.Errorf("%s\nthe service does not take this key: it is of another service or revoked", refused.Error())
	case refused.Status == http.StatusNotFound:
		return fmt.Errorf("%s\nthere is no such referential: POST /locations/referentiels opens one", refused.Error())
	case refused.Code == "reduction_suspecte":
		return fmt.Errorf("%s\nnothing was written; --confirm says that it is meant", refused.Error())
	case refused.Code == "capacite_sites_depassee":
		return fmt.Errorf("%s\nnothing was written", refused.Detail)
	}
	return err
}

func (p Program) sitesExport() *cli.Command {
	return &cli.Command{
		Name:  "export",
		Usage: "Write the active sites of a referential to a file",
		Description: `The file can be imported again, which changes nothing.

  lieudit sites export --referential shops > shops.csv
  lieudit sites export --referential shops --format geojson --out shops.geojson`,
		Flags: p.keyFlags(
			&cli.StringFlag{Name: "format", Value: "csv", Usage: "`FORMAT`: csv, geojson or ndjson", Validator: oneOf("csv", "geojson", "ndjson")},
			&cli.BoolFlag{Name: "excel", Usage: "CSV as a French Excel opens it"},
			&cli.StringFlag{Name: "out", Usage: "`FILE` to write; standard output when left out", TakesFile: true},
		),
		Action: p.calling(exportSites),
	}
}

func exportSites(ctx context.Context, e errand) error {
	query := url.Values{"format": {strings.ToLower(e.String("format"))}}
	if e.Bool("excel") {
		query.Set("tableur", "excel")
	}
	path := backoffice.Path("", "locations", "referentiels", e.String("referential")) + "/sites:export"
	out := e.String("out")
	if out == "" {
		return e.api.Copy(ctx, path, query, e.Out)
	}
	return whole(out, func(w io.Writer) error { return e.api.Copy(ctx, path, query, w) })
}

// whole writes a file that is there when all of it is.
func whole(name string, write func(io.Writer) error) error {
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
