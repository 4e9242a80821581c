package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/adminclient"
	"lieudit/cmd/terminal"
	"lieudit/schemas/body"
)

// auditCommand groups the commands that read an account's past from the log: /accounts/{id}/history and /state of the
// customer area.
func (p Program) auditCommand() *cli.Command {
	return terminal.NewGroup("audit", "What happened to an account, and how it stood at any instant",
		p.auditLogCommand(), p.auditStateCommand())
}

// accountFlag names the account instead of the argument, for those who write the account as a flag.
func accountFlag() cli.Flag {
	return &cli.StringFlag{Name: "account", Usage: "`ID` of the account, in place of the argument"}
}

// resolveAccount returns the account that the flag or the argument names. Neither of them, or two different accounts, are
// wrong usage.
func (s session) resolveAccount() (string, error) {
	fromFlag, fromArgument := s.String("account"), s.Args().First()
	switch {
	case fromFlag == "" && fromArgument == "":
		return "", terminal.NewUsageError(s.Command, "ACCOUNT is missing: %s ACCOUNT", s.FullName())
	case fromFlag != "" && fromArgument != "" && fromFlag != fromArgument:
		return "", terminal.NewUsageError(s.Command, "two accounts are named: %s and %s", fromArgument, fromFlag)
	case fromFlag != "":
		return fromFlag, nil
	}
	return fromArgument, nil
}

// auditLogCommand is lieudit audit log: GET /accounts/{id}/history.
func (p Program) auditLogCommand() *cli.Command {
	return &cli.Command{
		Name:      "log",
		Usage:     "Tell an account's history in sentences, oldest first",
		ArgsUsage: "[ACCOUNT]",
		Description: instantHelp + `

  lieudit audit log mende
  lieudit audit log --account mende --kind keys --from 2026-11-01 --to 2026-12-01
  lieudit audit log mende --kind sites --sites
  lieudit audit log mende --subject magasins/paris-1
  lieudit audit log mende --json > mende.ndjson`,
		Flags: p.areaFlags(
			accountFlag(),
			&cli.StringFlag{Name: "kind", Usage: "`KIND`: keys or sites, only what concerns them", Validator: terminal.OneOf("keys", "sites")},
			&cli.StringFlag{Name: "subject", Usage: "only what is about `SUBJECT`: the id of a key, the code of a referential, or code/external_id for a site"},
			&cli.BoolFlag{Name: "sites", Usage: "a line for each site of a sync too; without it a sync is one line with its counts"},
			&cli.StringFlag{Name: "from", Usage: "nothing before this `TIME`"},
			&cli.StringFlag{Name: "to", Usage: "only what is before this `TIME`"},
		),
		Action: p.areaAction(printAuditLog),
	}
}

// printAuditLog prints the history of an account, a sync of sites as one line unless its sites are asked for. It prints each line when it arrives and collects none: a history may be
// long.
func printAuditLog(ctx context.Context, s session) error {
	account, err := s.resolveAccount()
	if err != nil {
		return err
	}
	query, err := s.timeRangeQuery()
	if err != nil {
		return err
	}
	// The names of these flags are not those of the service's parameters.
	for parameter, value := range map[string]string{"kind": strings.ToLower(s.String("kind")), "sujet": s.String("subject")} {
		if value != "" {
			query.Set(parameter, value)
		}
	}
	if !s.Bool("sites") && s.String("subject") == "" && !s.Bool("json") { // JSON is for programs, which get all
		query.Set("resume", "true")
	}
	for raw, err := range s.client.List(ctx, adminclient.JoinPath("", "accounts", account, "history"), query) {
		if err != nil {
			return err
		}
		if err := printResource(s, raw, s.printAuditLine); err != nil {
			return err
		}
	}
	return nil
}

// timeRangeQuery returns a query with the instants of --from and --to, each only if its flag is set. A time that cannot be
// read is wrong usage.
func (s session) timeRangeQuery() (url.Values, error) {
	query := url.Values{}
	for _, name := range []string{"from", "to"} {
		t, err := s.parseInstant(s.String(name))
		if err != nil {
			return nil, terminal.NewUsageError(s.Command, "--%s: %v", name, err)
		}
		if !t.IsZero() {
			query.Set(name, t.Format(time.RFC3339Nano))
		}
	}
	return query, nil
}

// printAuditLine prints one event of the history: its time, what happened, by whom, for whom and why. The texts may come
// from customers, so they are sanitized.
func (s session) printAuditLine(i body.Incident) error {
	text := i.Sentence + ", by " + i.Author
	if i.OnBehalfOf != "" {
		text += " for " + i.OnBehalfOf
	}
	if i.Reason != "" {
		text += fmt.Sprintf(" (%s)", i.Reason)
	}
	return s.PrintLine("%s  %s", s.formatExactTime(i.Time), terminal.SanitizeText(text))
}

// auditStateCommand is lieudit audit state: GET /accounts/{id}/state. The service computes the state from the events of the
// log up to the instant, not from a read model.
func (p Program) auditStateCommand() *cli.Command {
	return &cli.Command{
		Name:      "state",
		Usage:     "Show an account and its valid keys as the log says they stood at an instant",
		ArgsUsage: "[ACCOUNT]",
		Description: instantHelp + `

  lieudit audit state mende
  lieudit audit state --account mende --as-of "2026-11-21 12:25"`,
		Flags: p.areaFlags(
			accountFlag(),
			&cli.StringFlag{Name: "as-of", Usage: "the `TIME`; now when left out"},
		),
		Action: p.areaAction(printAuditState),
	}
}

// printAuditState requests the state at the instant of --as-of, or now without it, and prints it.
func printAuditState(ctx context.Context, s session) error {
	account, err := s.resolveAccount()
	if err != nil {
		return err
	}
	at, err := s.parseInstant(s.String("as-of"))
	if err != nil {
		return terminal.NewUsageError(s.Command, "--as-of: %v", err)
	}
	query := url.Values{}
	if !at.IsZero() {
		query.Set("as_of", at.Format(time.RFC3339Nano))
	}
	var raw json.RawMessage
	path := adminclient.JoinPath("", "accounts", account, "state")
	if raw, err = s.client.Get(ctx, path, query); err != nil {
		return s.explainNoState(ctx, path, at, err)
	}
	return printResource(s, raw, s.printState)
}

// explainNoState says of an account that there is now, and of which there was nothing at an instant, when it was opened. It returns
// any other error as it is.
func (s session) explainNoState(ctx context.Context, path string, at time.Time, err error) error {
	var refused *adminclient.APIError
	if at.IsZero() || !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		return err
	}
	raw, errNow := s.client.Get(ctx, path, nil)
	var now body.State
	if errNow != nil || json.Unmarshal(raw, &now) != nil || now.Created.IsZero() {
		return err
	}
	return fmt.Errorf("%s was not open yet at %s: it was opened %s", now.Account, s.formatExactTime(at), s.formatExactTime(now.Created))
}

// printState prints the account and a table of the keys that were valid at the instant, with the position of the log up to
// which events were read.
func (s session) printState(a body.State) error {
	err := s.PrintFields(
		"account", a.Account,
		"as of", s.formatExactTime(a.AsOf),
		"name", a.Name,
		"plan", string(a.Plan),
		"quota", fmt.Sprintf("%d requests a month", a.Quota),
		"first period", a.Anchor.String(),
		"agency", describeAgency(a.IsAgency, a.Agency),
		"next", s.describeNextTerms(a.NextTerms),
		"next agency", s.describeNextAgency(a.NextAgency),
		"opened", s.formatTime(a.Created),
		"closed", s.formatTime(a.Closed),
		"log position", fmt.Sprint(a.Position),
	)
	if err != nil {
		return err
	}
	if len(a.Keys) == 0 {
		return s.PrintLine("\nNo valid key.")
	}
	t := terminal.Table{{"KEY", "KIND", "BEGINS AND ENDS", "LABEL", "ISSUED", "BY", "ORIGINS"}}
	for _, k := range a.Keys {
		row := s.keyRow(k)                       // its columns are those of keyHeaders
		t = append(t, append(row[:6:6], row[9])) // without last use, revocation and reason
	}
	if err := s.PrintLine("\nValid keys:"); err != nil {
		return err
	}
	return s.PrintTable(t)
}
