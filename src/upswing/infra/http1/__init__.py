"""HTTP/1.1 as both ports speak it: the loop's and the gateway's."""
