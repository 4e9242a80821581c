package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/backoffice"
)

// visit is a command's work with the customer area: its flags and words, and the API it asks.
type visit struct {
	*cli.Command
	Program
	api *backoffice.Client
}

// visiting makes work with the customer area a command's action.
func (p Program) visiting(work func(context.Context, visit) error) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		secret, err := p.token(c)
		if err != nil {
			return err
		}
		api, err := backoffice.New(c.String("area"), secret)
		if err != nil {
			return wrong(c, "--area: %v", err)
		}
		return work(ctx, visit{c, p, api})
	}
}

// areaFlags are the flags of every command that works with the customer area, after its own.
func (p Program) areaFlags(own ...cli.Flag) []cli.Flag {
	area := p.text("area", "http://127.0.0.1:8081", "`URL` of the customer area")
	file := p.text("token-file", "", "`FILE` with the customer-area token, - for standard input; else LIEUDIT_TOKEN holds it")
	file.DefaultText, file.TakesFile = "operator-token in ./lieudit-data or $LIEUDIT_DATA", true
	return append(own, area, file, &cli.BoolFlag{Name: "json", Usage: "print the API's own JSON; of lists, one line each"})
}

// token is the one to work with: from the file that was asked for, from the environment, or the one that a
// service left in its data folder.
func (p Program) token(c *cli.Command) (string, error) {
	file := c.String("token-file")
	if text, ok := p.Env("LIEUDIT_TOKEN"); ok && file == "" && strings.TrimSpace(text) != "" {
		return strings.TrimSpace(text), nil
	}
	if file == "" {
		folder, ok := p.Env("LIEUDIT_DATA")
		if !ok || folder == "" {
			folder = "./lieudit-data"
		}
		file = filepath.Join(folder, "operator-token")
	}
	text, err := p.readToken(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("there is no token in %s: run this where the service keeps its data folder, or name a token with --token-file FILE or LIEUDIT_TOKEN", file)
	case err != nil:
		return "", fmt.Errorf("reading the token: %w", err)
	case text == "":
		return "", fmt.Errorf("the token file %s is empty: name another with --token-file FILE or LIEUDIT_TOKEN", file)
	}
	return text, nil
}

func (p Program) readToken(file string) (string, error) {
	if file == "-" {
		text, err := io.ReadAll(io.LimitReader(p.In, 4096))
		return strings.TrimSpace(string(text)), err
	}
	text, err := os.ReadFile(file)
	return strings.TrimSpace(string(text)), err
}

// explain says what to do about what went wrong, where there is something to do.
func explain(err error) string {
	var silent *backoffice.SilentError
	var refused *backoffice.RefusedError
	switch {
	case errors.As(err, &silent):
		return fmt.Sprintf("%v\nis the service running (lieudit serve)? another address: --area URL or LIEUDIT_AREA", err)
	case errors.As(err, &refused) && refused.Status == http.StatusUnauthorized:
		return fmt.Sprintf("%v\nthe customer area does not take this token: it is of another service or revoked. Name one with --token-file FILE or LIEUDIT_TOKEN", err)
	case errors.As(err, &refused) && refused.Status == http.StatusNotFound:
		return fmt.Sprintf("%v\nthere is nothing of that name, or there was not yet, or it is not this token's. What there is: lieudit account list, key list ACCOUNT, token list, projections status", err)
	case errors.As(err, &refused) && refused.Status == http.StatusInternalServerError:
		return fmt.Sprintf("%v\nthe service's own log says why, on the standard error of lieudit serve", err)
	}
	return err.Error()
}

// one prints a single resource: as the API gave it, or as people read it.
func one[T any](v visit, raw json.RawMessage, people func(T) error) error {
	if v.Bool("json") {
		return v.printJSON(raw)
	}
	var resource T
	if err := json.Unmarshal(raw, &resource); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	return people(resource)
}

// many prints a list to its end: a line of JSON each as the API gave it, or a table.
func many[T any](ctx context.Context, v visit, path string, query url.Values, heads []string, row func(T) []string) error {
	return list(v, v.api.List(ctx, path, query), heads, row)
}

func list[T any](v visit, results iter.Seq2[json.RawMessage, error], heads []string, row func(T) []string) error {
	t := table{heads}
	for raw, err := range results {
		if err != nil {
			return err
		}
		err := one(v, raw, func(resource T) error {
			t = append(t, row(resource))
			return nil
		})
		if err != nil {
			return err
		}
	}
	if v.Bool("json") {
		return nil
	}
	return v.table(t)
}

func (v visit) printJSON(raw json.RawMessage) error {
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	_, err := fmt.Fprintln(v.Out, line.String())
	return err
}
