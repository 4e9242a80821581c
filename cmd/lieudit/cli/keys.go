package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/adminclient"
	"lieudit/cmd/lieudit/service"
	"lieudit/cmd/terminal"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
	"lieudit/schemas/token"
)

// keyCommand groups the commands on API keys: /accounts/{id}/keys of the customer area. A secret key is for servers and may
// call every endpoint; a publishable key stands in web pages, may search sites only, and only from the origins it declares.
func (p Program) keyCommand() *cli.Command {
	return terminal.NewGroup("key", "Issue, list and revoke API keys, change their origins",
		p.keyIssueCommand(), p.keyListCommand(), p.keyShowCommand(), p.keyRevokeCommand(), p.keyOriginsCommand(), p.keyCheckOriginsCommand(), p.keyTestOriginCommand())
}

// keyIssueCommand is lieudit key issue: POST /accounts/{id}/keys. The answer is the only one that ever holds a secret key:
// the service keeps its hash.
func (p Program) keyIssueCommand() *cli.Command {
	return &cli.Command{
		Name:      "issue",
		Usage:     "Issue an API key",
		ArgsUsage: "ACCOUNT",
		Description: `A secret key is shown this once. Piped, it prints the key alone.

  lieudit key issue mende --label "shop backend"
  lieudit key issue mende --kind publishable --origin https://www.mende.fr --origin 'https://*.mende.fr'
  KEY=$(lieudit key issue mende)
  lieudit key issue mende --replaces KEY --label "shop backend"   # the first step of a rotation; revoking KEY is the last one`,
		Flags: p.areaFlags(
			&cli.StringFlag{Name: "kind", Value: string(token.Secret), Usage: "`KIND`: secret, for a server, or publishable, for a web page", Validator: terminal.OneOf(string(token.Secret), string(token.Publishable))},
			&cli.StringFlag{Name: "label", Value: "issued from the command line", Usage: "`WHAT` it is for; an erasure of the account takes it away"},
			&cli.StringSliceFlag{Name: "origin", Usage: "`ORIGIN` a publishable key answers to, https://domain or https://*.domain; up to 10 of them; they stay on the log when the account is erased"},
			&cli.StringFlag{Name: "replaces", Usage: "`KEY`, an id, whose place the new one takes: both work until you revoke it"},
			&cli.StringFlag{Name: "idempotency-key", Usage: "`NAME` of this very command: for a day, the same one again prints the same key"},
		),
		Action: p.areaAction(issueKey),
	}
}

// issueKey sends POST /accounts/{id}/keys. It does not check that only a publishable key has origins: the service does.
func issueKey(ctx context.Context, s session) error {
	client := s.client
	if name := s.String("idempotency-key"); name != "" {
		client = client.WithHeader("Idempotency-Key", name)
	}
	raw, err := client.Post(ctx, adminclient.JoinPath("", "accounts", s.Args().First(), "keys"), body.IssueKey{
		Kind:     token.Kind(strings.ToLower(s.String("kind"))),
		Label:    s.String("label"),
		Origins:  s.StringSlice("origin"),
		Replaces: s.String("replaces"),
	})
	if err != nil {
		return err
	}
	return printResource(s, raw, s.printIssuedKey)
}

// printIssuedKey prints only the key if Out is not a terminal, so that a script can keep it in a variable. For people it
// adds where the key may be kept.
func (s session) printIssuedKey(k body.Key) error {
	s.printWarnings(k.Warnings)
	if !s.IsTerminal {
		return s.PrintLine("%s", k.Token)
	}
	advice := "This is the only time it is shown. Keep it on a server."
	if k.Kind == token.Publishable {
		advice = "It may stand in a web page of " + strings.Join(k.Origins, ", ") + "."
	}
	return s.PrintLine("%s key %s (%s):\n\n  %s\n\n%s", k.Kind, k.ID, terminal.SanitizeText(k.Label), k.Token, terminal.SanitizeText(advice))
}

// printWarnings prints the service's warnings on standard error, since standard output may be a pipe that takes the key.
func (s session) printWarnings(warnings []string) {
	for _, w := range warnings {
		fmt.Fprintln(s.Err, "warning: "+terminal.SanitizeText(w))
	}
}

// keyListCommand is lieudit key list: GET /accounts/{id}/keys, page after page, revoked keys included. It shows the hint of
// a key, never the key.
func (p Program) keyListCommand() *cli.Command {
	return &cli.Command{
		Name:      "list",
		Usage:     "List an account's keys, revoked ones too",
		ArgsUsage: "ACCOUNT",
		Flags:     p.areaFlags(),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			return printList(ctx, s, adminclient.JoinPath("", "accounts", s.Args().First(), "keys"), nil, keyHeaders(), s.keyRow)
		}),
	}
}

// keyHeaders are the columns of keyRow.
func keyHeaders() []string {
	return []string{"ID", "KIND", "KEY", "LABEL", "ISSUED", "BY", "LAST USED", "REVOKED", "REASON", "ORIGINS"}
}

// keyRow is a key as a row of a table. Hint is the beginning and the end of the key, which identify it without giving it
// away.
func (s session) keyRow(k body.Key) []string {
	return []string{
		k.ID, string(k.Kind), k.Hint, k.Label, s.formatTime(k.Created), k.CreatedBy,
		s.formatTime(k.LastUsed), s.formatTime(k.Revoked), k.Reason, strings.Join(k.Origins, " "),
	}
}

// keyShowCommand is lieudit key show: GET /accounts/{id}/keys/{key}.
func (p Program) keyShowCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "Show a key and when it was last used",
		ArgsUsage: "ACCOUNT KEY",
		Flags:     p.areaFlags(),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			raw, err := s.client.Get(ctx, adminclient.JoinPath("", "accounts", s.Args().Get(0), "keys", s.Args().Get(1)), nil)
			if err != nil {
				return err
			}
			return printResource(s, raw, s.printKey)
		}),
	}
}

// keyRevokeCommand is lieudit key revoke: POST /accounts/{id}/keys/{key}:revoke. It cannot be undone. The reason is
// required, for the audit.
func (p Program) keyRevokeCommand() *cli.Command {
	return &cli.Command{
		Name:        "revoke",
		Usage:       "Revoke a key: within a second it works nowhere",
		ArgsUsage:   "ACCOUNT KEY",
		Description: `  lieudit key revoke mende KEY --reason leak`,
		Flags: p.areaFlags(
			&cli.StringFlag{Name: "reason", Required: true, Usage: "`WHY`, for the audit trail: leak, rotation, offboarding…; an erasure of the account takes it away"},
		),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			path := adminclient.JoinPath("revoke", "accounts", s.Args().Get(0), "keys", s.Args().Get(1))
			raw, err := s.client.Post(ctx, path, body.RevokeKey{Reason: s.String("reason")})
			if err != nil {
				return err
			}
			return printResource(s, raw, s.printKey)
		}),
	}
}

// printKey prints a key for people, without the fields that are empty.
func (s session) printKey(k body.Key) error {
	s.printWarnings(k.Warnings)
	return s.PrintFields(
		"key", k.ID,
		"kind", string(k.Kind),
		"begins and ends", k.Hint,
		"label", k.Label,
		"origins", strings.Join(k.Origins, " "),
		"issued", s.joinTimeAndAuthor(s.formatTime(k.Created), k.CreatedBy),
		"replaces", k.Replaces,
		"last used", s.formatTime(k.LastUsed),
		"revoked", s.joinTimeAndAuthor(s.formatTime(k.Revoked), k.RevokedBy),
		"reason", k.Reason,
		"left out", strings.Join(k.Omitted, " "),
	)
}

// joinTimeAndAuthor joins when something was done and who did it; "" when it was not done.
func (s session) joinTimeAndAuthor(when, author string) string {
	if when == "" || author == "" {
		return when
	}
	return when + " by " + author
}

// keyOriginsCommand is lieudit key origins: PUT /accounts/{id}/keys/{key}/origins. It replaces all origins of the key, which
// name the web pages that may use it. ArgsUsage ensures that there are three arguments at least.
func (p Program) keyOriginsCommand() *cli.Command {
	return &cli.Command{
		Name:      "origins",
		Usage:     "Replace the origins of a publishable key; the key stays the same",
		ArgsUsage: "ACCOUNT KEY ORIGIN...",
		Description: `Up to 10 origins of the form https://domain or https://*.domain.

  lieudit key origins mende KEY https://www.mende.fr 'https://*.mende.fr'`,
		Flags: p.areaFlags(),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			arguments := s.Args().Slice()
			raw, err := s.client.Put(ctx, adminclient.JoinPath("", "accounts", arguments[0], "keys", arguments[1], "origins"), body.ChangeOrigins{Origins: arguments[2:]})
			if err != nil {
				return err
			}
			return printResource(s, raw, s.printKey)
		}),
	}
}

// keyCheckOriginsCommand is lieudit key check-origins: POST /accounts/{id}/origins:check. It fails if the list cannot be declared.
func (p Program) keyCheckOriginsCommand() *cli.Command {
	return &cli.Command{
		Name:        "check-origins",
		Usage:       "Tell which origins could be declared, and why not; nothing is changed",
		ArgsUsage:   "ACCOUNT ORIGIN...",
		Description: `  lieudit key check-origins mende https://www.mende.fr 'https://*.mende.fr' http://mende.fr`,
		Flags:       p.areaFlags(),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			arguments := s.Args().Slice()
			raw, err := s.client.Post(ctx, adminclient.JoinPath("check", "accounts", arguments[0], "origins"), body.CheckOrigins{Origins: arguments[1:]})
			if err != nil {
				return err
			}
			return printResource(s, raw, s.printVerdicts)
		}),
	}
}

// printVerdicts prints a line for each origin, and the refusal of the list as the error.
func (s session) printVerdicts(v body.OriginVerdicts) error {
	for _, o := range v.Results {
		text := o.Message
		if o.IsValid {
			text = "ok, kept as " + o.Kept
		}
		if err := s.PrintLine("%s\t%s", terminal.SanitizeText(o.Typed), terminal.SanitizeText(text)); err != nil {
			return err
		}
		if o.Warning != "" {
			s.printWarnings([]string{o.Warning})
		}
	}
	if v.Refusal != nil {
		return errors.New(terminal.SanitizeText(v.Refusal.Message))
	}
	return nil
}

// keyTestOriginCommand is lieudit key test-origin: POST /accounts/{id}/keys/{key}/origins:test. It fails if the page is refused.
func (p Program) keyTestOriginCommand() *cli.Command {
	return &cli.Command{
		Name:        "test-origin",
		Usage:       "Tell whether a publishable key works on a page, and which of its origins admits it",
		ArgsUsage:   "ACCOUNT KEY PAGE",
		Description: `  lieudit key test-origin mende KEY https://www.mende.fr/boutiques`,
		Flags:       p.areaFlags(),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			path := adminclient.JoinPath("test", "accounts", s.Args().Get(0), "keys", s.Args().Get(1), "origins")
			raw, err := s.client.Post(ctx, path, body.TestOrigin{Origin: s.Args().Get(2)})
			if err != nil {
				return err
			}
			return printResource(s, raw, func(o body.OriginTest) error {
				if o.Refusal != nil {
					return fmt.Errorf("%s: 403 %s: %s", terminal.SanitizeText(o.Origin), o.Refusal.Code, terminal.SanitizeText(o.Refusal.Message))
				}
				return s.PrintLine("%s is admitted by %s", terminal.SanitizeText(o.Origin), o.Entry)
			})
		}),
	}
}

// tokenCommand groups the commands on customer-area tokens: /tokens of the customer area. A token is for that listener what
// a key is for the API; its role says what the holder may do.
func (p Program) tokenCommand() *cli.Command {
	return terminal.NewGroup("token", "Issue, list, revoke and recover tokens of the customer area",
		p.tokenIssueCommand(), p.tokenListCommand(), p.tokenRevokeCommand(), p.tokenRecoverCommand())
}

// roleNames are the names of all roles, for the help and for validators.
func roleNames() []string {
	var names []string
	for _, r := range []grant.Role{grant.RoleOperator, grant.RoleCustomer, grant.RoleAgency, grant.RoleBilling, grant.RoleAuditor} {
		names = append(names, string(r))
	}
	return names
}

// tokenIssueCommand is lieudit token issue: POST /tokens. The answer is the only one that ever holds the token.
func (p Program) tokenIssueCommand() *cli.Command {
	return &cli.Command{
		Name:  "issue",
		Usage: "Issue a customer-area token",
		Description: `It is shown this once. Piped, it prints the token alone.

  lieudit token issue --role customer --account mende --label "Mairie de Mende"
  lieudit token issue --role auditor --label "audit 2026" > auditor-token`,
		Flags: p.areaFlags(
			&cli.StringFlag{Name: "role", Required: true, Usage: "`ROLE`: " + strings.Join(roleNames(), ", "), Validator: terminal.OneOf(roleNames()...)},
			&cli.StringFlag{Name: "account", Usage: "`ID` of the account the roles customer and agency act for"},
			&cli.StringFlag{Name: "label", Value: "issued from the command line", Usage: "`WHAT` it is for; of a token without an account it stays on the log for ever, so name nobody"},
		),
		Action: p.areaAction(issueToken),
	}
}

// issueToken sends POST /tokens. Whether the role needs an account is for the service to check.
func issueToken(ctx context.Context, s session) error {
	raw, err := s.client.Post(ctx, "/tokens", body.IssueToken{
		Role:    grant.Role(strings.ToLower(s.String("role"))),
		Account: s.String("account"),
		Label:   s.String("label"),
	})
	if err != nil {
		return err
	}
	return printResource(s, raw, s.printIssuedToken)
}

// printIssuedToken prints only the token if Out is not a terminal, so that a script can keep it in a file or a variable.
func (s session) printIssuedToken(t body.AreaToken) error {
	if !s.IsTerminal {
		return s.PrintLine("%s", t.Token)
	}
	return s.PrintLine("%s token %s (%s):\n\n  %s\n\nThis is the only time it is shown.", t.Role, t.ID, terminal.SanitizeText(t.Label), t.Token)
}

// tokenListCommand is lieudit token list: GET /tokens, page after page, revoked tokens included. It shows the hint of a
// token, never the token.
func (p Program) tokenListCommand() *cli.Command {
	return &cli.Command{
		Name:  "list",
		Usage: "List the customer-area tokens, revoked ones too",
		Flags: p.areaFlags(),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			headers := []string{"ID", "ROLE", "ACCOUNT", "TOKEN", "LABEL", "ISSUED", "BY", "REVOKED", "REASON"}
			return printList(ctx, s, "/tokens", nil, headers, s.tokenRow)
		}),
	}
}

// tokenRow is the row of a token in the table of token list.
func (s session) tokenRow(t body.AreaToken) []string {
	return []string{
		t.ID, string(t.Role), t.Account, t.Hint, t.Label,
		s.formatTime(t.Created), t.CreatedBy, s.formatTime(t.Revoked), t.Reason,
	}
}

// tokenRevokeCommand is lieudit token revoke: POST /tokens/{id}:revoke. It cannot be undone.
func (p Program) tokenRevokeCommand() *cli.Command {
	return &cli.Command{
		Name:        "revoke",
		Usage:       "Revoke a customer-area token",
		ArgsUsage:   "ID",
		Description: `  lieudit token revoke ID --reason offboarding`,
		Flags:       p.areaFlags(&cli.StringFlag{Name: "reason", Usage: "`WHY`, for the audit trail; of a token without an account it stays on the log for ever, so name nobody"}),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			raw, err := s.client.Post(ctx, adminclient.JoinPath("revoke", "tokens", s.Args().First()), body.RevokeToken{Reason: s.String("reason")})
			if err != nil {
				return err
			}
			return printResource(s, raw, s.printToken)
		}),
	}
}

// printToken prints a token for people, without the fields that are empty.
func (s session) printToken(t body.AreaToken) error {
	return s.PrintFields(
		"token", t.ID,
		"role", string(t.Role),
		"account", t.Account,
		"begins and ends", t.Hint,
		"label", t.Label,
		"issued", s.joinTimeAndAuthor(s.formatTime(t.Created), t.CreatedBy),
		"revoked", s.joinTimeAndAuthor(s.formatTime(t.Revoked), t.RevokedBy),
		"reason", t.Reason,
		"left out", strings.Join(t.Omitted, " "),
	)
}

// tokenRecoverCommand is lieudit token recover: service.RecoverOperatorToken, for an operator whose token is lost. It works on
// the log itself: no token is asked for, and the customer area need not run.
func (p Program) tokenRecoverCommand() *cli.Command {
	return &cli.Command{
		Name:  "recover",
		Usage: "Make a new operator token where the last one is lost, while no service runs on the folder",
		Description: `It is written to the file operator-token of the data folder, where the other commands find it. Tokens that were issued
before stay valid, unless --revoke-others ends all that have the role operator.
A log on EventStoreDB or on a node needs --eventstore; there the service may run meanwhile.

  lieudit token recover --data /var/lib/lieudit
  lieudit token recover --revoke-others`,
		Flags: []cli.Flag{
			p.dataFlag(),
			p.StringFlag("eventstore", "", "EventStoreDB or lieudit node with the log, as `esdb://…`; the journal of the data folder when left out"),
			&cli.BoolFlag{Name: "revoke-others", Usage: "revoke every other operator token: the lost one may be in wrong hands"},
			p.StringFlag("area-prefix", token.DefaultPrefixes.Area, "what customer-area tokens begin with"),
		},
		Action: p.recoverToken,
	}
}

// recoverTimeout bounds a recovery: a log on a server that is down would be waited for without an end.
const recoverTimeout = time.Minute

// recoverToken issues the token and names its file. It does not print the token: the commands read the file.
func (p Program) recoverToken(ctx context.Context, c *cli.Command) error {
	prefixes := token.DefaultPrefixes
	prefixes.Area = c.String("area-prefix")
	if err := prefixes.Validate(); err != nil {
		return terminal.NewUsageError(c, "%v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, recoverTimeout)
	defer cancel()
	recovered, err := service.RecoverOperatorToken(ctx, service.Config{
		Data: c.String("data"), EventStore: c.String("eventstore"), TokenPrefixes: prefixes, Log: p.newLogger("text"), Now: time.Now,
	}, c.Bool("revoke-others"))
	if err != nil {
		return err
	}
	if recovered.Revoked > 0 {
		if err := p.PrintLine("%d other operator tokens were revoked.", recovered.Revoked); err != nil {
			return err
		}
	}
	return p.PrintLine("A new operator token is in %s.", recovered.File)
}
