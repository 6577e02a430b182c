"""What each verb of the command line does: processes, client and screen put together."""
