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

// session is one run of a command that works with a running service: the command with its flags and arguments, the program
// with its streams, and a client of one listener. areaAction and apiAction make one.
type session struct {
	// Command holds the flags and arguments of this run: s.String, s.Bool, s.Args.
	*cli.Command
	// Program prints: s.PrintLine, s.PrintTable, s.PrintFields.
	Program
	client *adminclient.Client
}

// areaAction makes the action of a command that works with the customer area. It finds the token, makes the client and adds
// advice to an error of action.
func (p Program) areaAction(action func(context.Context, session) error) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		secret, err := p.readAreaToken(c)
		if err != nil {
			return err
		}
		client, err := adminclient.New(c.String("area"), secret)
		if err != nil {
			return terminal.NewUsageError(c, "--area: %v", err)
		}
		return areaAdvice().addTo(action(ctx, session{c, p, client}))
	}
}

// apiAction makes the action of a command that works with the API, as areaAction does for the customer area. Its requests
// have no time limit: imports and exports may be large.
func (p Program) apiAction(action func(context.Context, session) error) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		key, err := p.readAPIKey(c)
		if err != nil {
			return err
		}
		client, err := adminclient.NewAPI(c.String("url"), key)
		if err != nil {
			return terminal.NewUsageError(c, "--url: %v", err)
		}
		return apiAdvice().addTo(action(ctx, session{c, p, client.WithoutTimeout()}))
	}
}

// areaFlags returns a command's own flags and then those of every command that works with the customer area. None of them
// holds the token itself, because everybody on the machine can see the arguments of a process.
func (p Program) areaFlags(commandFlags ...cli.Flag) []cli.Flag {
	area := p.StringFlag("area", "http://127.0.0.1:8081", "`URL` of the customer area")
	file := p.StringFlag("token-file", "", "`FILE` with the customer-area token, - for standard input; else LIEUDIT_TOKEN holds it")
	file.DefaultText, file.TakesFile = "operator-token in ./lieudit-data or $LIEUDIT_DATA", true
	return append(commandFlags, area, file, &cli.BoolFlag{Name: "json", Usage: "print the API's own JSON; of lists, one line each"})
}

// sitesFlags are apiFlags with the required referential, which names a group of the customer's sites, first.
func (p Program) sitesFlags(commandFlags ...cli.Flag) []cli.Flag {
	referential := &cli.StringFlag{Name: "referential", Aliases: []string{"referentiel"}, Usage: "`CODE` of the referential", Required: true}
	return append([]cli.Flag{referential}, p.apiFlags(commandFlags...)...)
}

// apiFlags returns a command's own flags and then those of every command that works with the API: its address and the key. Unlike a
// token a key may be given as a flag, for a quick trial; the help warns of that.
func (p Program) apiFlags(commandFlags ...cli.Flag) []cli.Flag {
	file := p.StringFlag("key-file", "", "`FILE` with the secret key, - for standard input")
	file.TakesFile = true
	return append(commandFlags, p.StringFlag("url", "http://127.0.0.1:8080", "`URL` of the API"), file,
		&cli.StringFlag{Name: "key", Usage: "secret `KEY`; other programs can see it here: LIEUDIT_KEY or --key-file keep it"},
		&cli.BoolFlag{Name: "json", Usage: "print the API's own JSON"})
}

// readAreaToken returns the customer-area token: of --token-file, otherwise of LIEUDIT_TOKEN, otherwise the operator's token that a
// service wrote into its data folder at its first start. An empty variable counts as not set. A missing or empty file is
// an error that says what to do.
func (p Program) readAreaToken(c *cli.Command) (string, error) {
	file := c.String("token-file") // its own variable, LIEUDIT_TOKEN_FILE, is in it already
	if text, ok := p.LookupEnv("LIEUDIT_TOKEN"); ok && file == "" && strings.TrimSpace(text) != "" {
		return strings.TrimSpace(text), nil
	}
	if file == "" { // on the machine of the service no configuration is needed
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

// readAPIKey returns the secret key: of --key, otherwise of --key-file, otherwise of LIEUDIT_KEY. Without any it is an error that says
// how to get one.
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
	return "", errors.New("on whose account? name a secret key with LIEUDIT_KEY or --key-file FILE (lieudit key issue ACCOUNT)")
}

// readSecret reads a token or a key from a file, or the first 4 KiB of standard input if the file is "-". It removes the
// spaces and line ends around the secret.
func (p Program) readSecret(file string) (string, error) {
	if file == "-" {
		text, err := io.ReadAll(io.LimitReader(p.In, 4096))
		return strings.TrimSpace(string(text)), err
	}
	text, err := os.ReadFile(file)
	return strings.TrimSpace(string(text)), err
}

// advice is what people can do about an error of a request, by its cause. The texts differ between the listeners.
type advice struct{ unreachable, unauthorized, notFound string }

// areaAdvice is the advice for commands that work with the customer area. There a 404 may also hide what the token may not
// see.
func areaAdvice() advice {
	return advice{
		unreachable:  "is the service running (lieudit serve)? another address: --area URL or LIEUDIT_AREA",
		unauthorized: "the customer area does not take this token: it is of another service or revoked. Name one with --token-file FILE or LIEUDIT_TOKEN",
		notFound:     "there is nothing of that name, or there was not yet, or it is not this token's. What there is: lieudit account list, key list ACCOUNT, token list, projections status",
	}
}

// apiAdvice is the advice for commands that work with the API. A request that gets a 404 names a referential.
func apiAdvice() advice {
	return advice{
		unreachable:  "is the service running (lieudit serve)? another address: --url URL or LIEUDIT_URL",
		unauthorized: "the service does not take this key: it is of another service or revoked",
		notFound:     "there is no such referential: POST /locations/referentiels opens one",
	}
}

// addTo adds the advice for an error, if there is any, as a second line. The error stays wrapped. Other errors, and nil,
// are returned unchanged.
func (a advice) addTo(err error) error {
	// An UnreachableError never holds an APIError, so the order of the cases does not matter.
	var unreachable *adminclient.UnreachableError
	var refused *adminclient.APIError
	text := ""
	switch {
	case errors.As(err, &unreachable):
		text = a.unreachable
	case !errors.As(err, &refused): // no advice
	case refused.Status == http.StatusUnauthorized:
		text = a.unauthorized
	case refused.Status == http.StatusNotFound:
		text = a.notFound
	case refused.Status == http.StatusInternalServerError && strings.Contains(refused.Error(), "engine unavailable"):
		text = "lieudit health says why"
	case refused.Status == http.StatusInternalServerError:
		text = "the service's own log says why, on the standard error of lieudit serve"
	}
	if text == "" {
		return err
	}
	return fmt.Errorf("%w\n%s", err, text)
}

// printResource prints one resource: with --json the JSON as the service sent it, otherwise by render, for people. raw is the
// resource in JSON; render is not called with --json.
func printResource[T any](s session, raw json.RawMessage, render func(T) error) error {
	if s.Bool("json") {
		return s.printRawJSON(raw)
	}
	var resource T
	if err := json.Unmarshal(raw, &resource); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	return render(resource)
}

// printList requests a list page by page, to its end, and prints it as printResults does. Query may be nil.
func printList[T any](ctx context.Context, s session, path string, query url.Values, headers []string, row func(T) []string) error {
	return printResults(s, s.client.List(ctx, path, query), headers, row)
}

// printResults prints results. With --json it prints each as one line when it arrives, as the service sent it. Otherwise it
// prints a table when all have arrived, since the widths of the columns depend on all of them; after an error it then
// prints nothing.
func printResults[T any](s session, results iter.Seq2[json.RawMessage, error], headers []string, row func(T) []string) error {
	t := terminal.Table{headers}
	for raw, err := range results {
		if err != nil {
			return err
		}
		err := printResource(s, raw, func(resource T) error {
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

// printRawJSON prints JSON on one line, otherwise unchanged: fields that this release does not know are kept, and so is the
// order of the fields.
func (s session) printRawJSON(raw json.RawMessage) error {
	// The service may answer with JSON on several lines; programs read one resource a line.
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	_, err := fmt.Fprintln(s.Out, line.String())
	return err
}
