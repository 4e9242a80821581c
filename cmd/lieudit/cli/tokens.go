package cli

import (
	"context"
	"strings"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/adminclient"
	"lieudit/cmd/terminal"
	"lieudit/schemas/access"
	"lieudit/schemas/body"
)

func (p Program) tokenCommand() *cli.Command {
	return terminal.NewGroup("token", "Issue, list and revoke tokens of the customer area",
		p.tokenIssueCommand(), p.tokenListCommand(), p.tokenRevokeCommand())
}

func roleNames() []string {
	var out []string
	for _, r := range []access.Role{access.RoleOperator, access.RoleCustomer, access.RoleAgency, access.RoleBilling, access.RoleAuditor} {
		out = append(out, string(r))
	}
	return out
}

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
			&cli.StringFlag{Name: "label", Value: "issued from the command line", Usage: "`WHAT` it is for"},
		),
		Action: p.areaAction(issueToken),
	}
}

func issueToken(ctx context.Context, s areaSession) error {
	raw, err := s.client.Post(ctx, "/tokens", body.IssueToken{
		Role:    access.Role(strings.ToLower(s.String("role"))),
		Account: s.String("account"),
		Label:   s.String("label"),
	})
	if err != nil {
		return err
	}
	return printOne(s, raw, s.printIssuedToken)
}

func (s areaSession) printIssuedToken(t body.AreaToken) error {
	if !s.IsTerminal {
		return s.PrintLine("%s", t.Token)
	}
	return s.PrintLine("%s token %s (%s):\n\n  %s\n\nThis is the only time it is shown.", t.Role, t.ID, terminal.SanitizeText(t.Label), t.Token)
}

func (p Program) tokenListCommand() *cli.Command {
	return &cli.Command{
		Name:  "list",
		Usage: "List the customer-area tokens, revoked ones too",
		Flags: p.areaFlags(),
		Action: p.areaAction(func(ctx context.Context, s areaSession) error {
			headers := []string{"ID", "ROLE", "ACCOUNT", "TOKEN", "LABEL", "ISSUED", "BY", "REVOKED", "REASON"}
			return printList(ctx, s, "/tokens", nil, headers, s.tokenRow)
		}),
	}
}

func (s areaSession) tokenRow(t body.AreaToken) []string {
	return []string{
		t.ID, string(t.Role), t.Account, t.Hint, t.Label,
		s.formatTime(t.Created), t.CreatedBy, s.formatTime(t.Revoked), t.Reason,
	}
}

func (p Program) tokenRevokeCommand() *cli.Command {
	return &cli.Command{
		Name:        "revoke",
		Usage:       "Revoke a customer-area token",
		ArgsUsage:   "ID",
		Description: `  lieudit token revoke ID --reason offboarding`,
		Flags:       p.areaFlags(&cli.StringFlag{Name: "reason", Usage: "`WHY`, for the audit trail"}),
		Action: p.areaAction(func(ctx context.Context, s areaSession) error {
			raw, err := s.client.Post(ctx, adminclient.JoinPath("revoke", "tokens", s.Args().First()), body.RevokeToken{Reason: s.String("reason")})
			if err != nil {
				return err
			}
			return printOne(s, raw, s.printToken)
		}),
	}
}

func (s areaSession) printToken(t body.AreaToken) error {
	return s.PrintFields(
		"token", t.ID,
		"role", string(t.Role),
		"account", t.Account,
		"begins and ends", t.Hint,
		"label", t.Label,
		"issued", s.formatBy(s.formatTime(t.Created), t.CreatedBy),
		"revoked", s.formatBy(s.formatTime(t.Revoked), t.RevokedBy),
		"reason", t.Reason,
	)
}
