package cli

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

	"lieudit/cmd/lieudit/adminclient"
	"lieudit/cmd/terminal"
)

// areaSession is a command's work with the customer area: its flags and words, and the API it asks.
type areaSession struct {
	*cli.Command
	Program
	client *adminclient.Client
}

// areaAction makes work with the customer area a command's action.
func (p Program) areaAction(action func(context.Context, areaSession) error) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		secret, err := p.readAreaToken(c)
		if err != nil {
			return err
		}
		client, err := adminclient.New(c.String("area"), secret)
		if err != nil {
			return terminal.NewUsageError(c, "--area: %v", err)
		}
		return action(ctx, areaSession{c, p, client})
	}
}

// areaFlags are the flags of every command that works with the customer area, after its own.
func (p Program) areaFlags(commandFlags ...cli.Flag) []cli.Flag {
	area := p.StringFlag("area", "http://127.0.0.1:8081", "`URL` of the customer area")
	file := p.StringFlag("token-file", "", "`FILE` with the customer-area token, - for standard input; else LIEUDIT_TOKEN holds it")
	file.DefaultText, file.TakesFile = "operator-token in ./lieudit-data or $LIEUDIT_DATA", true
	return append(commandFlags, area, file, &cli.BoolFlag{Name: "json", Usage: "print the API's own JSON; of lists, one line each"})
}

// readAreaToken is the one to work with: from the file that was asked for, from the environment, or the one that a
// service left in its data folder.
func (p Program) readAreaToken(c *cli.Command) (string, error) {
	file := c.String("token-file")
	if text, ok := p.LookupEnv("LIEUDIT_TOKEN"); ok && file == "" && strings.TrimSpace(text) != "" {
		return strings.TrimSpace(text), nil
	}
	if file == "" {
		folder, ok := p.LookupEnv("LIEUDIT_DATA")
		if !ok || folder == "" {
			folder = "./lieudit-data"
		}
		file = filepath.Join(folder, "operator-token")
	}
	text, err := p.readSecret(file)
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

func (p Program) readSecret(file string) (string, error) {
	if file == "-" {
		text, err := io.ReadAll(io.LimitReader(p.In, 4096))
		return strings.TrimSpace(string(text)), err
	}
	text, err := os.ReadFile(file)
	return strings.TrimSpace(string(text)), err
}

// explainError says what to do about what went wrong, where there is something to do.
func explainError(err error) string {
	var unreachable *adminclient.UnreachableError
	var apiError *adminclient.APIError
	switch {
	case errors.As(err, &unreachable):
		return fmt.Sprintf("%v\nis the service running (lieudit serve)? another address: --area URL or LIEUDIT_AREA", err)
	case errors.As(err, &apiError) && apiError.Status == http.StatusUnauthorized:
		return fmt.Sprintf("%v\nthe customer area does not take this token: it is of another service or revoked. Name one with --token-file FILE or LIEUDIT_TOKEN", err)
	case errors.As(err, &apiError) && apiError.Status == http.StatusNotFound:
		return fmt.Sprintf("%v\nthere is nothing of that name, or there was not yet, or it is not this token's. What there is: lieudit account list, key list ACCOUNT, token list, projections status", err)
	case errors.As(err, &apiError) && apiError.Status == http.StatusInternalServerError:
		return fmt.Sprintf("%v\nthe service's own log says why, on the standard error of lieudit serve", err)
	}
	return err.Error()
}

// printOne prints a single resource: as the API gave it, or as people read it.
func printOne[T any](s areaSession, raw json.RawMessage, render func(T) error) error {
	if s.Bool("json") {
		return s.printRawJSON(raw)
	}
	var resource T
	if err := json.Unmarshal(raw, &resource); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	return render(resource)
}

// printList prints a list to its end: a line of JSON each as the API gave it, or a table.
func printList[T any](ctx context.Context, s areaSession, path string, query url.Values, headers []string, row func(T) []string) error {
	return printResults(s, s.client.List(ctx, path, query), headers, row)
}

func printResults[T any](s areaSession, results iter.Seq2[json.RawMessage, error], headers []string, row func(T) []string) error {
	t := terminal.Table{headers}
	for raw, err := range results {
		if err != nil {
			return err
		}
		err := printOne(s, raw, func(resource T) error {
			t = append(t, row(resource))
			return nil
		})
		if err != nil {
			return err
		}
	}
	if s.Bool("json") {
		return nil
	}
	return s.PrintTable(t)
}

func (s areaSession) printRawJSON(raw json.RawMessage) error {
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	_, err := fmt.Fprintln(s.Out, line.String())
	return err
}
