package cli

import (
	"context"
	"strings"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/adminclient"
	"lieudit/cmd/terminal"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
)

// loginCommand is lieudit login: POST /sessions:link. Whoever holds a token gets a link for a browser with it.
func (p Program) loginCommand() *cli.Command {
	return &cli.Command{
		Name:  "login",
		Usage: "Make a link that opens the customer area in a browser",
		Description: `The link works once, for 15 minutes. The session that it opens may do what the token may, and ends with it; lieudit session
lists and ends sessions. Piped, it prints the link alone.

  lieudit login
  xdg-open "$(lieudit login)"`,
		Flags: p.areaFlags(),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			raw, err := s.client.Post(ctx, "/sessions:link", body.Empty{})
			if err != nil {
				return err
			}
			return printResource(s, raw, func(l body.SessionLink) error {
				return s.printLink(l, "Open this link in a browser. It works once, until %s:", s.formatTime(l.Expires))
			})
		}),
	}
}

// inviteCommand is lieudit invite: POST /invitations. It makes a token that nobody sees, and a link for its holder.
func (p Program) inviteCommand() *cli.Command {
	return &cli.Command{
		Name:  "invite",
		Usage: "Invite somebody to the customer area",
		Description: `It makes a link to pass on, which works once, for 7 days. Whoever opens it holds a token of their own from then on, which
lieudit token list shows and lieudit token revoke ends. Piped, it prints the link alone.

  lieudit invite --role customer --account mende --label "Mairie de Mende"
  lieudit invite --role auditor --label "audit 2026"`,
		Flags: p.areaFlags(
			&cli.StringFlag{Name: "role", Required: true, Usage: "`ROLE`: " + strings.Join(roleNames(), ", "), Validator: terminal.OneOf(roleNames()...)},
			&cli.StringFlag{Name: "account", Usage: "`ID` of the account the roles customer and agency act for"},
			&cli.StringFlag{Name: "label", Value: "invited from the command line", Usage: "`WHAT` it is for; of a token without an account it stays on the log for ever, so name nobody"},
		),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			raw, err := s.client.Post(ctx, "/invitations", body.Invite{
				Role: grant.Role(strings.ToLower(s.String("role"))), Account: s.String("account"), Label: s.String("label"),
			})
			if err != nil {
				return err
			}
			return printResource(s, raw, func(l body.SessionLink) error {
				return s.printLink(l, "Pass this link on. It works once, until %s, and gives the role %s (token %s):", s.formatTime(l.Expires), l.Role, l.Token)
			})
		}),
	}
}

// printLink prints only the link if Out is not a terminal, so that a script can pass it on.
func (s session) printLink(l body.SessionLink, introduction string, values ...any) error {
	if !s.IsTerminal {
		return s.PrintLine("%s", l.URL)
	}
	return s.PrintLine(introduction+"\n\n  %s", append(values, l.URL)...)
}

// sessionCommand groups the sessions of the token that the command line uses.
func (p Program) sessionCommand() *cli.Command {
	return terminal.NewGroup("session", "List and end the sessions that browsers have with a token", p.sessionListCommand(), p.sessionEndCommand())
}

// sessionListCommand is lieudit session list: GET /sessions.
func (p Program) sessionListCommand() *cli.Command {
	return &cli.Command{
		Name:  "list",
		Usage: "List the sessions of the token",
		Flags: p.areaFlags(),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			return printList(ctx, s, "/sessions", nil, []string{"ID", "ROLE", "ACCOUNT", "OPENED", "UNTIL"}, func(o body.Session) []string {
				return []string{o.ID, string(o.Role), o.Account, s.formatTime(o.Opened), s.formatTime(o.Expires)}
			})
		}),
	}
}

// sessionEndCommand is lieudit session end: DELETE /sessions/{id}, or DELETE /sessions.
func (p Program) sessionEndCommand() *cli.Command {
	return &cli.Command{
		Name:      "end",
		Usage:     "End a session of the token, or all of them",
		ArgsUsage: "[ID]",
		Description: `With --all the links that were not used end too. The token stays valid: lieudit token revoke ends it.

  lieudit session end ID
  lieudit session end --all`,
		Flags: p.areaFlags(&cli.BoolFlag{Name: "all", Usage: "end all sessions of the token"}),
		Action: p.areaAction(func(ctx context.Context, s session) error {
			id := s.Args().First()
			if s.Bool("all") == (id != "") {
				return terminal.NewUsageError(s.Command, "name a session (lieudit session list), or --all")
			}
			path, done := "/sessions", "All sessions have ended."
			if id != "" {
				path, done = adminclient.JoinPath("", "sessions", id), "The session has ended."
			}
			raw, err := s.client.Delete(ctx, path)
			if err != nil {
				return err
			}
			return printResource(s, raw, func(body.Envelope) error { return s.PrintLine("%s", done) })
		}),
	}
}
